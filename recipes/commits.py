#!/usr/bin/env python3
"""A small database: put your own in its place.

commits.py write FILE   Runs transactions until the disk fails, and prints how many of them it reported as committed.
commits.py count FILE   Prints how many transactions the log in FILE has from the first one on.

A transaction appends a record to the log, waits until the disk says that it is safe, and is then reported as committed. Its
sixteen pages go to the table afterwards, and no client waits for them: after a crash they are made again from the log.
"""

import os
import random
import struct
import sys
import zlib

PAGE = 4096  # bytes
TABLE = 1 << 30  # byte at which the table begins; the log is before it
TABLE_PAGES = 25_000_000  # 100 GB


def record(number):
    """The log's record of a transaction: its number, bytes that depend on it, and a checksum over both."""
    body = struct.pack("<QI", number, zlib.crc32(struct.pack("<Q", number))) * ((PAGE - 4) // 12)
    return body + struct.pack("<I", zlib.crc32(body))


def write(path):
    committed = 0
    disk = os.open(path, os.O_RDWR)
    draw = random.Random(1)
    try:
        while True:
            new = record(committed + 1)
            os.pwrite(disk, new, committed * PAGE)
            os.fdatasync(disk)  # the disk receives a FLUSH
            committed += 1
            for _ in range(16):
                os.pwrite(disk, new, TABLE + draw.randrange(TABLE_PAGES) * PAGE)
    except OSError:
        print(f"{committed} transactions were reported as committed", flush=True)


def count(path):
    whole = 0
    disk = os.open(path, os.O_RDONLY)
    while os.pread(disk, PAGE, whole * PAGE) == record(whole + 1):
        whole += 1
    print(f"{whole} transactions are in the log", flush=True)


if len(sys.argv) != 3 or sys.argv[1] not in ("write", "count"):
    sys.exit(__doc__)
{"write": write, "count": count}[sys.argv[1]](sys.argv[2])
