"""Pinning batches beside the program: a thread between the workers and who asks for batches."""

from __future__ import annotations

import os
import queue
import threading
import weakref
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from typing import Any

from tensorflow_lite_clone import cuda
from tensorflow_lite_clone.utils.data._utils.loop import Failure, StreamEnd
from tensorflow_lite_clone.utils.data._utils.pin_memory import pin_memory
from tensorflow_lite_clone.utils.data._utils.pool import WorkerPool


class Pinner:
    """Takes the answers of a pool's workers as they come, and pins their batches.

    An exception that pinning raises takes the batch's place, as a worker's does. `workers_stay`
    says whether workers live on when their streams have ended. `close()` ends the thread, before
    the pool is closed; the program's end does too, as it must not come while CUDA is at work here.
    """

    def __init__(self, pool: WorkerPool, workers_stay: bool) -> None:
        self.answers: queue.SimpleQueue = queue.SimpleQueue()
        bell, rope = Pipe(duplex=False)
        arguments = pool, workers_stay, cuda.current_device(), bell, self.answers
        self.thread = threading.Thread(target=pin_all, args=arguments, name="pinning", daemon=True)
        self.thread.start()
        self.close = weakref.finalize(self, end, self.thread, rope, bell, os.getpid())

    def receive(self, timeout: float | None) -> tuple[int, int, Any]:
        """Waits for an answer, as `WorkerPool.receive` does, with the same exceptions."""
        try:
            answer = self.answers.get(timeout=timeout)
        except queue.Empty:
            raise TimeoutError from None
        if isinstance(answer, Failure):
            self.answers.put(answer)  # for the next call: the thread has gone
            answer.reraise()
        return answer


def end(thread: threading.Thread, rope: Connection, bell: Connection, owner: int) -> None:
    """Rings the bell, which is held until then, and waits; a forked process has no such thread."""
    if os.getpid() != owner:
        return
    rope.send_bytes(b".")  # closing it would not do: processes forked since have copies
    if thread is not threading.current_thread():  # whose garbage collection may bring us
        thread.join()


def pin_all(
    pool: WorkerPool, workers_stay: bool, device: int, bell: Connection, answers: queue.SimpleQueue
) -> None:
    """Pin what comes until the bell rings, with `device` as the current one."""
    listening = set(range(len(pool.workers)))
    try:
        with cuda.device(device):
            while (answer := pool.receive(listening, None, bell)) is not None:
                epoch, number, data = answer
                if isinstance(data, StreamEnd):
                    if not workers_stay:
                        listening.remove(data.worker_id)
                elif not isinstance(data, Failure):
                    data = pinned(data, device)
                answers.put((epoch, number, data))
                del answer, data  # do not hold the batch while waiting for the next one
    except BaseException as error:  # a worker has died, say; without an answer all would wait on
        answers.put(Failure(type(error), str(error)))


def pinned(data: Any, device: int) -> Any:
    """The batch in page-locked memory, or why not."""
    try:
        return pin_memory(data)
    except Exception as error:
        return Failure.of(error, f"in pin memory thread for device {device}")
