"""A slow wire in user space: frames between a node's link and the bridge wait before they pass.

For kernels without `netem`. Run as a program of its own: LINK TAP MILLISECONDS. Frames go in both directions with their
virtio header, so that large segments and checksums left to the hardware pass as they are.
"""

import collections
import fcntl
import os
import select
import socket
import struct
import sys
import time

TUNSETIFF, IFF_TAP, IFF_NO_PI, IFF_VNET_HDR = 0x400454CA, 0x0002, 0x1000, 0x4000
SOL_PACKET, PACKET_VNET_HDR, PACKET_OUTGOING, ETH_P_ALL = 263, 15, 4, 3
FRAME_BYTES, QUEUE_FRAMES = 1 << 17, 10_000

Wire = collections.deque[tuple[float, bytes]]


def open_tap(name: str) -> int:
    tap = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
    fcntl.ioctl(tap, TUNSETIFF, struct.pack("16sH", name.encode(), IFF_TAP | IFF_NO_PI | IFF_VNET_HDR))
    return tap


def open_link(name: str) -> socket.socket:
    link = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
    link.setsockopt(SOL_PACKET, PACKET_VNET_HDR, 1)
    link.setblocking(False)
    link.bind((name, ETH_P_ALL))
    return link


def take_from_link(link: socket.socket, wire: Wire, due: float) -> None:
    frame, (_, _, kind, *_) = link.recvfrom(FRAME_BYTES)
    if kind != PACKET_OUTGOING and len(wire) < QUEUE_FRAMES:  # what we sent ourselves comes by again
        wire.append((due, frame))


def take_from_tap(tap: int, wire: Wire, due: float) -> None:
    frame = os.read(tap, FRAME_BYTES)
    if len(wire) < QUEUE_FRAMES:
        wire.append((due, frame))


def pass_on(sink: int, wire: Wire, now: float) -> None:
    """Hand over what has waited long enough; what the other side refuses is lost, as on any wire."""
    while wire and wire[0][0] <= now:
        _, frame = wire.popleft()
        try:
            os.write(sink, frame)
        except OSError:
            continue


def shuttle(link: socket.socket, tap: int, seconds: float) -> None:
    outward: Wire = collections.deque()
    inward: Wire = collections.deque()
    while True:
        heads = [wire[0][0] for wire in (outward, inward) if wire]
        rest = max(0.0, min(heads) - time.monotonic()) if heads else None
        ready, _, _ = select.select([link.fileno(), tap], [], [], rest)
        now = time.monotonic()
        if link.fileno() in ready:
            take_from_link(link, outward, now + seconds)
        if tap in ready:
            take_from_tap(tap, inward, now + seconds)
        pass_on(tap, outward, now)
        pass_on(link.fileno(), inward, now)


if __name__ == "__main__":
    shuttle(open_link(sys.argv[1]), open_tap(sys.argv[2]), float(sys.argv[3]) / 1000)
