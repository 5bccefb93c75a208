#!/usr/bin/env python3
"""Hostile packets to the port of a node agent, idle and in the middle of a job.

usage: hostile.py BUILD [--packets 20000] [--rounds 3] [--seed 1] [--silent 1200]

For each kind of connection (plain; TLS with a valid certificate, with one of another authority, and with one that has
expired), a sender (tests/transport/hostile_sender.cpp) sends random, truncated, changed, oversized and repeated packets to
an idle agent, and to the agent of a running job. No process may crash, memory must stay within 64 MB of its earlier
value, and the job must end well. Prints the job's rate beside the sender, as a share of its rate beside the same sender
aimed at a port that discards everything (medians over the rounds). Last, silent connections to the agent of a TLS job:
the job's rate beside them as a share of its rate without them, and the descriptors that the agent keeps after them.
Exit code 1 after a failure.
"""
import argparse
import json
import os
import re
import resource
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

LIMIT_MB = 64
LISTENING = re.compile(r"listening on ([^\s:]+:\d+)")


class Failed(Exception):
    pass


def start(arguments, log):
    with log.open("w") as out:
        return subprocess.Popen([str(word) for word in arguments], stdin=subprocess.DEVNULL, stdout=out, stderr=out)


def wait_for(condition, what, limit=60):
    until = time.monotonic() + limit
    while not condition():
        if time.monotonic() > until:
            raise Failed(f"{what} did not happen within {limit} s")
        time.sleep(0.02)


def listening(log):
    wait_for(lambda: LISTENING.search(log.read_text()), f"listening ({log})")
    return LISTENING.search(log.read_text())[1]


def memory_mb(process):
    status = Path(f"/proc/{process.pid}/status").read_text()
    return int(re.search(r"VmRSS:\s+(\d+)", status)[1]) / 1024


def descriptors(process):
    return len(os.listdir(f"/proc/{process.pid}/fd"))


class Discard:
    """A port that reads and discards."""

    def __init__(self):
        self.socket = socket.create_server(("127.0.0.1", 0), backlog=1024)
        self.port = self.socket.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                connection, _ = self.socket.accept()
            except OSError:
                return
            threading.Thread(target=self.read, args=(connection,), daemon=True).start()

    @staticmethod
    def read(connection):
        with connection:
            try:
                while connection.recv(1 << 16):
                    pass
            except OSError:
                pass


class Trial:
    def __init__(self, arguments, folder):
        self.bin = Path(arguments.build) / "bin"
        self.sender = Path(arguments.build) / "tests" / "hostile_sender"
        self.arguments = arguments
        self.folder = folder
        self.sent = 0

    def certificates(self, name, *more):
        subprocess.run([self.bin / "leeway", "cert", self.folder / name, *more], check=True, stdout=subprocess.DEVNULL)
        return self.folder / name / "node"

    def send(self, port, tls=None, blind=False):
        words = [self.sender, port, "--packets", self.arguments.packets, "--seed", self.arguments.seed]
        if callable(tls):  # it expires before the first packet
            words += ["--tls", tls(), "--after", "4"]
        elif tls:
            words += ["--tls", tls]
        words += ["--blind"] if blind else []
        return subprocess.Popen([str(word) for word in words], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)

    def finish(self, sender, discarded=False):
        out, _ = sender.communicate(timeout=1200)
        if sender.returncode != 0:
            raise Failed(f"the sender ended with code {sender.returncode}")
        if not discarded:
            self.sent += json.loads(out)["packets"]

    def check(self, agent, before, what):
        if agent.poll() is not None:
            raise Failed(f"{what}: the agent has ended with code {agent.returncode}")
        after = memory_mb(agent)
        if after > before + LIMIT_MB:
            raise Failed(f"{what}: memory has grown from {before:.0f} to {after:.0f} MB")
        return after

    def rate(self, run):
        """Samples of the job so far, by its metrics."""
        try:
            lines = (run / "metrics.jsonl").read_text().splitlines()
        except OSError:
            return 0
        for line in reversed(lines):
            try:
                metric = json.loads(line)
            except ValueError:
                continue
            if "samples" in metric:
                return metric["samples"]
        return 0

    def one(self, name, own, sender_tls):
        """`own`: the folder of the agent's certificates, or None."""
        tls = ["--tls", own] if own else []
        log = self.folder / f"{name}.agent.log"
        agent = start([self.bin / "leeway", "node", "--listen", "127.0.0.1:0", *tls], log)
        program = None
        discard = Discard()
        try:
            address = listening(log)
            port = int(address.rsplit(":", 1)[1])
            # Idle. The first packets let the process reach its usual size.
            for turn in range(2):
                before = memory_mb(agent)
                self.finish(self.send(port, sender_tls))
                time.sleep(1)
            idle = self.check(agent, before, f"{name}, idle") - before
            program, run, program_log = self.train(name, address, tls)
            before = memory_mb(agent)
            shares = []
            for turn in range(self.arguments.rounds):
                rates = {}
                for target in ("discard", "agent") if turn % 2 == 0 else ("agent", "discard"):
                    sender = self.send(port if target == "agent" else discard.port, sender_tls if target == "agent" else None,
                                       blind=target == "discard")
                    began, samples = time.monotonic(), self.rate(run)
                    self.finish(sender, discarded=target == "discard")
                    time.sleep(max(0, 3 - (time.monotonic() - began)))
                    rates[target] = (self.rate(run) - samples) / (time.monotonic() - began)
                shares.append(rates["agent"] / max(rates["discard"], 1e-9))
            busy = self.check(agent, before, f"{name}, in a job") - before
            self.interrupt(name, program, program_log)
            print(f"{name:12} idle {idle:+5.1f} MB, in a job {busy:+5.1f} MB, rate {statistics.median(shares):.2f} "
                  f"({min(shares):.2f} to {max(shares):.2f})", flush=True)
        finally:
            for process in (program, agent):
                if process and process.poll() is None:
                    process.kill()
            discard.socket.close()

    def train(self, name, address, tls):
        """Starts an endless job on the agent: its process, run folder and log."""
        run = self.folder / f"{name}.run"
        log = self.folder / f"{name}.program.log"
        program = start([self.bin / "fashion-mlp", "--nodes", address, "--workers", "2", "--epochs", "100000",
                         "--evaluate-every", "0", "--checkpoint-every", "none", "--out", run, *tls], log)
        wait_for(lambda: self.rate(run) > 0, f"the beginning of the job ({log})")
        return program, run, log

    def interrupt(self, name, program, log):
        program.send_signal(signal.SIGINT)
        if program.wait(timeout=60) != 130:
            raise Failed(f"{name}: the program has ended with code {program.returncode}: {log.read_text()}")

    def silent(self, name, own):
        """Connections that send nothing."""
        tls = ["--tls", own]
        log = self.folder / f"{name}.agent.log"
        agent = start([self.bin / "leeway", "node", "--listen", "127.0.0.1:0", *tls], log)
        program = None
        try:
            address = listening(log)
            port = int(address.rsplit(":", 1)[1])
            program, run, program_log = self.train(name, address, tls)
            before = descriptors(agent)
            shares = []
            for turn in range(self.arguments.rounds):
                rates = {}
                for count in (0, self.arguments.silent) if turn % 2 == 0 else (self.arguments.silent, 0):
                    idle = [socket.create_connection(("127.0.0.1", port), 60) for _ in range(count)]
                    began, samples = time.monotonic(), self.rate(run)
                    time.sleep(6)
                    rates[count] = (self.rate(run) - samples) / (time.monotonic() - began)
                    for connection in idle:
                        connection.close()
                shares.append(rates[self.arguments.silent] / max(rates[0], 1e-9))
            wait_for(lambda: descriptors(agent) <= before, f"{name}: as few descriptors as before, {before}")
            self.interrupt(name, program, program_log)
            print(f"{name:12} {self.arguments.silent} connections, rate {statistics.median(shares):.2f} "
                  f"({min(shares):.2f} to {max(shares):.2f}), descriptors of the agent as before", flush=True)
        finally:
            for process in (program, agent):
                if process and process.poll() is None:
                    process.kill()

    def all(self):
        self.one("plain", None, None)
        own = self.certificates("own")
        self.one("valid", own, own)
        self.one("foreign", own, self.certificates("other"))
        self.one("expired", own, self.expiring)
        if self.arguments.silent > 0:
            self.silent("silent", own)

    def expiring(self):
        """A certificate of the authority that expires in three seconds."""
        authority = self.folder / "own"
        folder = Path(tempfile.mkdtemp(dir=self.folder))
        for file in ("ca.pem", "node.key"):
            shutil.copy(authority / "node" / file, folder / file)
        (folder / "index").touch()
        (folder / "config").write_text(
            f"[ca]\ndefault_ca = own\n[own]\ndatabase = {folder}/index\nserial = {folder}/serial\nnew_certs_dir = {folder}\n"
            "default_md = sha256\npolicy = any\nx509_extensions = both\nrand_serial = yes\n[any]\ncommonName = supplied\n"
            "[both]\nextendedKeyUsage = serverAuth, clientAuth\n")
        until = time.strftime("%Y%m%d%H%M%SZ", time.gmtime(time.time() + 3))
        for command in (
            ["req", "-new", "-key", folder / "node.key", "-subj", "/CN=expired", "-out", folder / "request.pem"],
            ["ca", "-batch", "-notext", "-config", folder / "config", "-cert", authority / "ca.pem", "-keyfile",
             authority / "ca.key", "-in", folder / "request.pem", "-out", folder / "node.pem", "-startdate",
             "20200101000000Z", "-enddate", until],
        ):
            subprocess.run(["openssl", *command], check=True, capture_output=True)
        return folder


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("build")
    parser.add_argument("--packets", type=int, default=20_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--silent", type=int, default=1200, help="silent connections; 0 leaves them out")
    arguments = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="leeway-hostile-"))
    trial = Trial(arguments, folder)
    try:
        trial.all()
    except Failed as failed:
        print(f"FAILED: {failed}; logs in {folder}")
        return 1
    print(f"{trial.sent:,} packets")
    shutil.rmtree(folder)
    return 0


if __name__ == "__main__":
    resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
    os.environ["LEEWAY_TOKEN"] = str(Path(tempfile.gettempdir()) / f"leeway-hostile-token-{os.getpid()}")
    sys.exit(main())
