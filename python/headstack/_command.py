"""Emulated disks and storage nodes as context managers: they start the command `headstack` and end it."""

from __future__ import annotations

import os
from typing import IO, TYPE_CHECKING

from ._errors import CommandError, InputError

# What starts programs is imported where one is started: it would be a fifth of the time that the package takes to import.
if TYPE_CHECKING:
    import subprocess
    from threading import Event
    from types import TracebackType

__all__ = ["Server", "command", "emulate", "serve"]

#: Seconds within which the command accepts clients, and within which it ends.
START_S, END_S = 60.0, 30.0


def command() -> str:
    """The command `headstack`: the environment's HEADSTACK_COMMAND, or the one on PATH. Raises CommandError if there is none."""
    import shutil

    found = os.environ.get("HEADSTACK_COMMAND") or shutil.which("headstack")
    if not found:
        raise CommandError("headstack: no such command (install it on PATH, or set HEADSTACK_COMMAND to its path)")
    return found


class Server:
    """A running `headstack emulate` or `headstack serve`, on a socket of its own. It ends with the `with` block.

    `uri` is the first disk, for NBD clients: `qemu-io`, `nbdinfo`, `fio --ioengine=nbd`. `uris` has all, by name.
    """

    def __init__(self, arguments: list[str]) -> None:
        """The command's arguments; it starts with the `with` block."""
        self._arguments = arguments
        self._process: subprocess.Popen[str] | None = None
        self._output: list[str] = []
        self.uris: dict[str, str] = {}

    def __enter__(self) -> Server:
        """Starts the command and waits until clients can connect."""
        import subprocess
        import tempfile
        import threading

        self._folder = tempfile.TemporaryDirectory(prefix="headstack-")
        socket = os.path.join(self._folder.name, "nbd")
        arguments = [command(), *self._arguments, "--nbd", f"unix:{socket}"]
        self._process = subprocess.Popen(
            arguments, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, text=True
        )
        assert self._process.stdout is not None
        met = threading.Event()
        self._reader = threading.Thread(target=self._read, args=(self._process.stdout, met), daemon=True)
        self._reader.start()
        met.wait(START_S)
        if not self.uris:
            self._end()
            text = "".join(self._output).strip() or f"no disk within {START_S:.0f} s"
            raise CommandError(f"{' '.join(arguments[:2])}: {text}")
        return self

    def _read(self, stream: IO[str], met: Event) -> None:
        for line in stream:
            self._output.append(line)
            word = line.strip().split(" ")[-1]
            if word.startswith("nbd") and "://" in word:
                self.uris[word.split("://", 1)[1].split("?")[0].lstrip("/")] = word
                met.set()
        met.set()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Ends the command in an orderly way."""
        self._end()

    def _end(self) -> None:
        process = self._process
        if process is None:
            return
        import subprocess

        process.terminate()
        try:
            process.wait(END_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        self._reader.join(END_S)
        if process.stdout is not None:
            process.stdout.close()
        self._process = None
        self._folder.cleanup()

    @property
    def uri(self) -> str:
        """The URI of the first disk."""
        if not self.uris:
            raise CommandError("the disks are served inside the `with` block only")
        return next(iter(self.uris.values()))

    @property
    def output(self) -> str:
        """What the command has printed; after its end, with the statistics of the disks."""
        return "".join(self._output)


def _options(options: dict[str, object]) -> list[str]:
    """Options of the command of keyword arguments: `speed=10` is `--speed 10`, a list is the option several times."""
    arguments = []
    for name, value in options.items():
        option = f"--{name.replace('_', '-')}"
        if name == "nbd":
            raise InputError("nbd: the server has a socket of its own (uri)")
        for item in value if isinstance(value, (list, tuple)) else (value,):
            if item is True:
                arguments.append(option)
            elif item is not None and item is not False:
                arguments += [option, str(item)]
    return arguments


def emulate(*disks: str | os.PathLike[str], **options: object) -> Server:
    """Emulated disks with the timing of drives or rigs: `with headstack.emulate("exos-x16", speed=10) as disk: …`.

    Keywords are the options of `headstack emulate`; `set={"drive.queue_depth": 16}` and lists repeat an option.
    """
    if not disks:
        raise InputError("emulate: no disk (a drive, a rig or a file)")
    keys = options.pop("set", None)
    if isinstance(keys, dict):
        options["set"] = [f"{key}={value}" for key, value in keys.items()]
    elif keys is not None:
        options["set"] = keys
    return Server(["emulate", *_options(options), *(os.fspath(disk) for disk in disks)])


def serve(*disks: str | os.PathLike[str], config: str | os.PathLike[str] | None = None, **options: object) -> Server:
    """A storage node that serves disks or files, or what a node file says: `with headstack.serve("disk.img") as node: …`.

    Keywords are the options of `headstack serve`.
    """
    arguments = ["serve", *_options(options)]
    for disk in disks:
        arguments += ["--disk", os.fspath(disk)]
    if config is not None:
        arguments.append(os.fspath(config))
    return Server(arguments)
