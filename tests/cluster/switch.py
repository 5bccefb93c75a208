#!/usr/bin/env python3
"""A switch between network namespaces, with delay and loss; for namespaces_test.sh.

switch.py NAME... makes a TAP device `lw` in each named namespace, and forwards Ethernet frames between
them. Each line on standard input is a command:

    delay MS          delays all later frames by this time
    loss SHARE        drops this share of all later frames, at random with a fixed seed
    cut NAME [NAME]   drops all frames to and from the namespace, or between the two
    mend NAME [NAME]  ends the cut

Prints "ready" on standard output when the devices exist, and "ok" after each command. Ends at the end
of standard input.
"""
import fcntl
import heapq
import os
import random
import select
import struct
import subprocess
import sys
import time

TUNSETIFF = 0x400454CA
IFF_TAP, IFF_NO_PI = 0x0002, 0x1000
MOST_WAITING = 100_000  # frames; further ones are dropped


def open_tap(device):
    tap = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
    fcntl.ioctl(tap, TUNSETIFF, struct.pack("16sH22x", device.encode(), IFF_TAP | IFF_NO_PI))
    return tap


class Switch:
    def __init__(self, names):
        self.names = names
        self.taps = []
        for index, name in enumerate(names):
            device = f"lwtap{os.getpid() % 10000}-{index}"
            self.taps.append(open_tap(device))
            subprocess.run(["ip", "link", "set", device, "netns", name, "name", "lw"], check=True)
        self.delay = 0.0
        self.loss = 0.0
        self.cut = set()  # of frozensets: a port, or a pair of ports
        self.random = random.Random(1)
        self.port_of = {}  # by hardware address
        self.due = []  # (time, number, receiver, sender, frame)
        self.number = 0

    def command(self, line):
        verb, *values = line.split()
        if verb == "delay":
            self.delay = float(values[0]) / 1000
        elif verb == "loss":
            self.loss = float(values[0])
        elif verb in ("cut", "mend"):
            ports = frozenset(map(self.names.index, values))
            (self.cut.add if verb == "cut" else self.cut.discard)(ports)
        else:
            raise ValueError(f"{verb} is not a command; see the top of switch.py")

    def is_cut(self, port, other):
        return not self.cut.isdisjoint((frozenset({port}), frozenset({other}), frozenset({port, other})))

    def receive(self, port, now):
        for _ in range(64):  # then the other ports have their turn
            try:
                frame = os.read(self.taps[port], 65536)
            except (BlockingIOError, OSError):
                return
            if self.loss and self.random.random() < self.loss:
                continue
            self.port_of[frame[6:12]] = port
            to = self.port_of.get(frame[0:6])
            for receiver in range(len(self.taps)) if to is None else [to]:
                if receiver != port and not self.is_cut(port, receiver) and len(self.due) < MOST_WAITING:
                    self.number += 1
                    heapq.heappush(self.due, (now + self.delay, self.number, receiver, port, frame))

    def send_due(self, now):
        while self.due and self.due[0][0] <= now:
            _, _, receiver, sender, frame = heapq.heappop(self.due)
            if self.is_cut(sender, receiver):
                continue
            try:
                os.write(self.taps[receiver], frame)
            except (BlockingIOError, OSError):
                pass  # its queue is full, or it is not up

    def run(self):
        print("ready", flush=True)
        pending = b""
        while True:
            wait = max(self.due[0][0] - time.monotonic(), 0) if self.due else None
            ready, _, _ = select.select([0] + self.taps, [], [], wait)
            now = time.monotonic()
            for port, tap in enumerate(self.taps):
                if tap in ready:
                    self.receive(port, now)
            if 0 in ready:
                read = os.read(0, 4096)
                if not read:
                    return
                pending += read
                *lines, pending = pending.split(b"\n")
                for line in lines:
                    self.command(line.decode())
                    print("ok", flush=True)
            self.send_due(time.monotonic())


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    Switch(sys.argv[1:]).run()
