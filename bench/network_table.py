#!/usr/bin/python3
"""Samples/s of codecs on networks of different speed, measured and simulated.

usage: network_table.py [--rounds 3] [--seconds 5] [--scenario fashion-mlp] [--build build/release]
                        [--links none 1 0.1] [--codecs CODECS...] [-- ARGUMENTS OF THE SCENARIO...]

Three network namespaces on one switch have a program with one shard, and two nodes with a worker each. `tc tbf` limits the
links of all three in both directions to a number of Gbit/s; `none` does not. Traffic is encrypted (TLS). The simulated
column is the same run in the world that `--calibrate` measures, with these links and, for `none`, without limit. Needs root
and an otherwise idle machine.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from run_result import benchmark_arguments, median_and_spread, output_of, result_of

CODECS = ["none", "push=bf16,pull=bf16", "push=int8,pull=bf16", "push=int8,pull=int8",
          "push=top_k(0.01),pull=bf16"]
HOSTS = ["program", "b", "c"]
PLACE = "shards=0,worker0=1,worker1=2"
LATENCY = "100us"  # of a simulated link, one way: a veth pair and two wake-ups


def sh(*words, **options):
    subprocess.run([str(word) for word in words], check=True, **options)


class Network:
    """A switch and three hosts, each in a namespace. The hosts have the addresses 10.98.8.1 to 3."""

    def __init__(self):
        self.switch = f"lwsw{os.getpid()}"
        self.names = [f"lw{host}{os.getpid()}" for host in HOSTS]

    def make(self):
        for name in [self.switch, *self.names]:
            sh("ip", "netns", "add", name)
        sh("ip", "-n", self.switch, "link", "add", "bridge0", "type", "bridge")
        sh("ip", "-n", self.switch, "link", "set", "bridge0", "up")
        for number, name in enumerate(self.names, 1):
            sh("ip", "-n", self.switch, "link", "add", f"port{number}", "type", "veth", "peer", "name", "eth", "netns", name)
            sh("ip", "-n", self.switch, "link", "set", f"port{number}", "master", "bridge0", "up")
            sh("ip", "-n", name, "link", "set", "lo", "up")
            sh("ip", "-n", name, "addr", "add", f"10.98.8.{number}/24", "dev", "eth")
            sh("ip", "-n", name, "link", "set", "eth", "up")

    def limit(self, gbit):
        for number, name in enumerate(self.names, 1):
            for space, device in ((self.switch, f"port{number}"), (name, "eth")):
                subprocess.run(["tc", "-n", space, "qdisc", "del", "dev", device, "root"], stderr=subprocess.DEVNULL,
                               check=False)
                if gbit is not None:
                    # A burst of a millisecond, as a timer of the kernel may be late.
                    burst = max(32_000, int(gbit * 125_000))
                    sh("tc", "-n", space, "qdisc", "add", "dev", device, "root", "tbf", "rate", f"{gbit}gbit", "burst", burst,
                       "latency", "50ms")

    def sent_bytes(self, host):
        """Bytes that the link has sent, with the headers of all layers."""
        name = self.names[HOSTS.index(host)]
        return json.loads(output_of("ip", "-n", name, "-s", "-j", "link", "show", "eth"))[0]["stats64"]["tx"]["bytes"]

    def command(self, host, *words):
        return ["ip", "netns", "exec", self.names[HOSTS.index(host)], *map(str, words)]

    def remove(self):
        for name in [self.switch, *self.names]:
            subprocess.run(["ip", "netns", "del", name], stderr=subprocess.DEVNULL, check=False)


class Measurement:
    """Nodes in the namespaces, for all runs. Without `--transport tcp`, processes of one host share memory."""

    def __init__(self, network, bin_folder, folder):
        self.network, self.bin, self.folder = network, bin_folder, Path(folder)
        sh(bin_folder / "leeway", "cert", self.folder / "tls", *(w for host in HOSTS for w in ("--node", host)),
           stdout=subprocess.DEVNULL)
        self.agents = []
        for number, host in enumerate(HOSTS[1:], 2):
            log = open(self.folder / f"{host}.log", "w+")
            self.agents.append(subprocess.Popen(
                network.command(host, bin_folder / "leeway", "node", "--listen", f"10.98.8.{number}:4242", "--transport",
                                "tcp", "--tls", self.folder / "tls" / host), stderr=log))
            end = time.monotonic() + 60
            while "listening" not in (self.folder / f"{host}.log").read_text():
                if time.monotonic() > end:
                    self.stop()
                    sys.exit(f"the node {host} does not listen after 60 s")
                time.sleep(0.1)

    def run(self, scenario, *arguments, place=PLACE):
        return result_of(*self.network.command(
            "program", self.bin / scenario, "--nodes", "10.98.8.2:4242,10.98.8.3:4242", "--place", place, "--transport", "tcp",
            "--tls", self.folder / "tls" / "program", *arguments))

    def stop(self):
        for agent in self.agents:
            agent.terminate()
            agent.wait()


def simulate(program, world, codec, link, arguments):
    return result_of(program, "--simulate", "--gradients", "none", "--world",
                     f"@{world},nodes=each,latency={LATENCY},link={link or 0}", "--compress", codec,
                     *arguments)["samples_per_second"]


def main():
    args = benchmark_arguments(__doc__, links=["none", "1", "0.1"], codecs=CODECS)
    bin_folder = Path(args.build).resolve() / "bin"
    shared = ["--workers", "2", "--shards", "1", "--epochs", "10000", "--evaluate-every", "0", *args.arguments]
    timed = [*shared, "--seconds", args.seconds]
    network = Network()
    try:
        network.make()
        with tempfile.TemporaryDirectory() as folder:
            world = Path(folder) / "world.toml"
            sh(bin_folder / args.scenario, *shared, "--calibrate", world, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            measurement = Measurement(network, bin_folder, folder)
            try:
                first = args.codecs[0]
                print(f"| {args.scenario} | codecs | samples/s | of {first} | simulated | of {first} |\n" + "|---" * 6 + "|")
                for text in args.links:
                    link = None if text == "none" else float(text)
                    network.limit(link)
                    rates = {codec: [] for codec in args.codecs}
                    for number in range(args.rounds):
                        for codec in args.codecs:
                            rates[codec].append(measurement.run(args.scenario, "--compress", codec, *timed)["samples_per_second"])
                        print(f"{text}: round {number + 1} of {args.rounds}", file=sys.stderr)
                    simulated = {codec: simulate(bin_folder / args.scenario, world, codec, link, timed)
                                 for codec in args.codecs}
                    of = {codec: median_and_spread(values) for codec, values in rates.items()}
                    name = "not limited" if link is None else f"{text} Gbit/s"
                    for codec in args.codecs:
                        median, spread = of[codec]
                        print(f"| {name} | `{codec}` | {median:,.0f} ± {spread:.0%} | {median / of[first][0]:.2f} | "
                              f"{simulated[codec]:,.0f} | {simulated[codec] / simulated[first]:.2f} |", flush=True)
            finally:
                measurement.stop()
    finally:
        network.remove()


if __name__ == "__main__":
    main()
