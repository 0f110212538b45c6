"""The loops of kernels.py as numba's functions: importing this loads a compiler.

Owns the walk over records, which blocks are hashed together (lanes.py), and digits. Must not know what an id
means beyond values.py. What is odd ends a loop early: the plain form decides then what is wrong.

Arrays are copied by loops: an assignment of one array to another compiles the texts of numba's error about
their shapes, for two seconds. A literal number as an argument compiles the function for that number alone.
"""

# mypy: disable-error-code="no-untyped-def, no-untyped-call, untyped-decorator, misc, assignment"
# mypy: disable-error-code="call-arg, unreachable"

import numpy as np
from numba import njit

from fencepost.proxy.record.lanes import IV, LANES, compress_lanes, word_at

BLOCK, WORDS, WORD = 128, 16, 8
"""Bytes of a block of BLAKE2b, words in it, bytes of a word."""
ALL, LOW = np.uint64(0xFFFFFFFFFFFFFFFF), np.uint64(0xFFFFFFFF)
FOREIGN = np.uint64(1 << 62)
SEQUENCES = np.uint64(1 << 31)
OF_SEQUENCE = np.uint64(0x9E3779B1)
HUNDRED, TEN_TO_8 = np.uint64(100), np.uint64(100_000_000)
__all__ = ["IV"]
PAIRS = np.frombuffer(b"".join(b"%02d" % n for n in range(100)), np.uint8)
"""The two digits of each number below 100."""


@njit(cache=True, nogil=True)
def _fill(data, start, left, message, lane):
    """The words of a lane's block: `left` bytes from a position on, then zeros."""
    whole = min(max(left, 0) >> 3, WORDS)
    for n in range(whole):
        message[n * LANES + lane] = word_at(data, start + n * WORD)
    if whole < WORDS:
        rest, word = left - whole * WORD, np.uint64(0)
        for n in range(rest):
            word |= np.uint64(data[start + whole * WORD + n]) << np.uint64(8 * n)
        message[whole * LANES + lane] = word
        for n in range(whole + 1, WORDS):
            message[n * LANES + lane] = np.uint64(0)


@njit(cache=True, nogil=True)
def state_of(head, block):
    """What the block of a key leaves, for all lanes; head: the eight first words of the state."""
    state, words = np.empty(8 * LANES, np.uint64), np.empty(WORDS * LANES, np.uint64)
    for n in range(8):
        for lane in range(LANES):
            state[n * LANES + lane] = head[n]
    for lane in range(LANES):
        _fill(block, np.int64(0), np.int64(BLOCK), words, lane)
    compress_lanes(state, words, np.full(LANES, BLOCK, np.uint64), np.zeros(LANES, np.uint64))
    return state


@njit(cache=True, nogil=True)
def _turned(word):
    """The bytes of a word in the other order."""
    low, high = np.uint64(0x00FF00FF00FF00FF), np.uint64(0x0000FFFF0000FFFF)
    word = (word >> np.uint64(8)) & low | (word & low) << np.uint64(8)
    word = (word >> np.uint64(16)) & high | (word & high) << np.uint64(16)
    return word >> np.uint64(32) | word << np.uint64(32)


@njit(cache=True, nogil=True)
def _hash(data, starts, lengths, state, h, message, counted, last, numbers):
    """The first eight bytes of each lane's digest, big-endian; a lane of no bytes has none."""
    for n in range(len(h)):
        h[n] = state[n]
    longest = 0
    for lane in range(LANES):
        longest = max(longest, lengths[lane])
    for done in range(0, longest, BLOCK):
        for lane in range(LANES):
            left = lengths[lane] - done
            _fill(data, starts[lane] + done, left, message, lane)
            counted[lane] = BLOCK + done + min(max(left, 0), BLOCK)
            last[lane] = ALL if left <= BLOCK else np.uint64(0)
        compress_lanes(h, message, counted, last)
        for lane in range(LANES):
            if 0 < lengths[lane] - done <= BLOCK:
                numbers[lane] = _turned(h[lane])


@njit(cache=True, nogil=True)
def _varint(data, position, end):
    """(number, position after it); position -1: longer than 28 bits, or beyond the end."""
    number, shift = 0, 0
    while position < end and shift < 28:
        byte = np.int64(data[position])
        position += 1
        number |= (byte & 127) << shift
        if byte < 128:
            return (number >> 1) ^ -(number & 1), position
        shift += 7
    return 0, -1


@njit(cache=True, nogil=True)
def ids_of(data, position, state, plain, mixed, first, ids, deltas):
    """Fill ids and offset deltas; returns how many records are as they have to be."""
    available, whole = len(data), len(ids)
    h, message = np.empty(8 * LANES, np.uint64), np.empty(WORDS * LANES, np.uint64)
    counted, last = np.empty(LANES, np.uint64), np.empty(LANES, np.uint64)
    starts, lengths = np.zeros(LANES, np.int64), np.zeros(LANES, np.int64)
    numbers = np.empty(LANES, np.uint64)
    for place in range(whole):
        length, position = _varint(data, position, available)
        end = position + length
        if position < 0 or length < 0 or end > available:
            return place
        position += 1  # attributes
        while position < end and data[position] & 128:  # the time delta, which is no part of the content
            position += 1
        position += 1
        delta, position = _varint(data, position, end)
        if position < 0 or position >= end or delta < 0:
            return place
        deltas[place] = delta
        lane = place % LANES
        starts[lane], lengths[lane] = position, end - position
        position = end
        if lane == LANES - 1 or place == whole - 1:
            lengths[lane + 1 :] = 0
            _hash(data, starts, lengths, state, h, message, counted, last, numbers)
            for n in range(lane + 1):
                at = place - lane + n
                if plain:
                    ids[at] = np.int64(FOREIGN | numbers[n] >> np.uint64(2))
                else:
                    sequence = (first + np.uint64(deltas[at])) % SEQUENCES
                    low = (numbers[n] ^ (sequence * OF_SEQUENCE + mixed)) & LOW
                    ids[at] = np.int64(FOREIGN | (numbers[n] >> np.uint64(34)) << np.uint64(32) | low)
    return whole


@njit(cache=True, nogil=True)
def _eight(out, at, number):
    """Eight digits of a number below 10^8, which may begin with zeros."""
    for n in (6, 4, 2, 0):
        less = number // HUNDRED
        pair = np.int64(number - less * HUNDRED) * 2
        out[at + n], out[at + n + 1] = PAIRS[pair], PAIRS[pair + 1]
        number = less


@njit(cache=True, nogil=True)
def text_of(ids, out):
    """Fill out with numbers and commas between them; returns the length. None is below zero."""
    at, scratch = 0, np.empty(24, np.uint8)
    for place in range(len(ids)):
        if place:
            out[at] = 44
            at += 1
        number = np.uint64(ids[place])
        for start in (16, 8, 0):
            higher = number // TEN_TO_8
            _eight(scratch, start, number - higher * TEN_TO_8)
            number = higher
        begin = 0
        while begin < 23 and scratch[begin] == 48:
            begin += 1
        for n in range(begin, 24):
            out[at] = scratch[n]
            at += 1
    return at
