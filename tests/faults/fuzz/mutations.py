"""Changes to a valid text: of its bytes, and of its tokens, whatever its language."""

import random
import re

TOKEN = re.compile(rb'"(?:[^"\\\n]|\\.)*"|\'[^\'\n]*\'|[\w.+-]+|\s+|.', re.DOTALL)
LONGEST = 300_000  # bytes of a case
MOST_TOKENS = 4000

# Tokens apart by a space, those with one in them after them.
NUMBERS = (
    *b"0 -0 -1 1 2 7 0.5 -0.0 1e308 1e309 -1e400 5e-324 1e-400 NaN nan .nan Infinity -Infinity .inf".split(),
    *b"017 0x1f 0o17 0b1 1_000 1:30 1.0 1e5 +1 1e 1j 10000000 10000001 9223372036854775808".split(),
    *b"2026-01-01 2026-01-01T00:00:00Z 12:00:00 \xd9\xa1 \xef\xbc\x91".split(),
    *(b"9" * 20, b"9" * 400, b"9" * 5000, b"1" + b":0" * 200 + b".0"),
)
WORDS = (
    *b"true True false yes null ~ None '' \"\" {} [] [[]] () x y set list[float] __class__ __proto__".split(),
    *rb'''"\u0000" "\ud800" "\udc00\ud800" "\u202e" "\x1b[31m" "\u001b[2J" "\n" "\r\n"'''.split(),
    *b'"a.safetensors" "../x" "/etc/passwd" "gpt2" "bert" auto_map model_type'.split(),
    *b'"reserve" "torn" "open" "pld" "rdp" "prv"'.split(),
    *b"architectures patient_id text note_id identifiers inserted b'x' f'{x}' lambda:0".split(),
    *b"!!python/name:os.system !!float !!int !!bool !!timestamp !x &a *a << ? --- ... # |".split(),
    *(
        b"!!binary aGk=",
        rb'"\UFFFFFFFF"',
        b"&a [*a]",
        b"<<: *a",
        b"---\n",
        b"%YAML 9.9\n---\n",
        b"|\n  x",
        b">-\n  x",
        b"# c\n",
        b"[&a [x,x,x,x,x,x,x,x,x]"
        + b"".join(b",&%c [%s]" % (98 + n, b",".join([b"*%c" % (97 + n)] * 9)) for n in range(9))
        + b"]",
    ),
    *(b"in [0, 1]", b"in (1, 0)", b"in [nan, 1]", b"in [0, 1e400]", b"one of a, b", b"one of "),
    *(b'"' + b"x" * 5000 + b'"', b"y" * 5000),
    *"\u0430 e\u0301 \u00e9 \ufb01 \U0001f600 \u200b \u202e \ufeff \x07 \x7f \x1b[31m".encode().split(b" "),
    *(char.encode() for char in "\u2028\x85\t\x1c\u3000"),
)
BYTES = tuple(b'\0 \xff \xfe\xff \xef\xbb\xbf \xed\xa0\x80 \xc0\x80 \xf4\x90\x80\x80 \r \n " \\'.split(b" "))
NESTED = tuple(b'[|{|{"a":|[{|- |(|-|~|!|&a |  |\n|"|{a: |? |not '.split(b"|"))


def _nasty(draw: random.Random) -> bytes:
    pool = draw.choice((NUMBERS, NUMBERS, WORDS, WORDS, BYTES, NESTED))
    piece = draw.choice(pool)
    if pool is NESTED and draw.random() < 0.5:
        piece *= draw.choice((2, 11, 100, 1000, 20_000))
    return piece


def _of_bytes(draw: random.Random, data: bytes, other: bytes) -> bytes:
    at = draw.randrange(len(data) + 1)
    end = min(len(data), at + draw.choice((1, 2, 8, 40, 400)))
    how = draw.randrange(8)
    if how == 0:
        changed = bytearray(data)
        for _ in range(draw.choice((1, 1, 2, 8))):
            if changed:
                changed[draw.randrange(len(changed))] ^= 1 << draw.randrange(8)
        return bytes(changed)
    if how == 1:
        return data[:at]
    if how == 2:
        return data[:at] + data[end:]
    if how == 3:
        return data[:at] + draw.randbytes(end - at or 1) + data[end:]
    if how == 4:
        return data[:at] + data[at:end] * draw.choice((2, 3, 50, 1000)) + data[end:]
    if how == 5:  # a piece of another input
        start = draw.randrange(len(other) + 1)
        return data[:at] + other[start : start + draw.choice((4, 40, 4000))] + data[at:]
    if how == 6:
        return data[:at] + _nasty(draw) + data[at:]
    return data[at:] + data[:at]


def _of_tokens(draw: random.Random, data: bytes, other: bytes) -> bytes:
    tokens = TOKEN.findall(data)
    if not tokens or len(tokens) > MOST_TOKENS:
        return _of_bytes(draw, data, other)
    at = draw.randrange(len(tokens))
    for _ in range(8):  # a token that says something, most of the time
        if tokens[at].strip() and len(tokens[at]) > 1:
            break
        at = draw.randrange(len(tokens))
    second, how = draw.randrange(len(tokens)), draw.randrange(10)
    if how < 5:
        new = _nasty(draw)
        quoted = tokens[at][:1] == b'"' and draw.random() < 0.5
        tokens[at] = b'"' + new.strip(b'"') + b'"' if quoted else new
    elif how == 5:
        del tokens[at]
    elif how == 6:
        tokens[at], tokens[second] = tokens[second], tokens[at]
    elif how == 7:
        tokens[at] = tokens[second]
    elif how == 8:  # a name or a line twice
        low, high = sorted((at, second))
        tokens[high:high] = tokens[low : min(high, low + 12)]
    else:
        tokens[at:at] = TOKEN.findall(other)[: draw.choice((1, 3, 20))]
    return b"".join(tokens)


def mutated(draw: random.Random, data: bytes, other: bytes = b"") -> bytes:
    """Return a text with one to five changes.

    Args:
        draw: where every choice comes from.
        data: a text.
        other: of which pieces are put in.
    """
    for _ in range(draw.choice((1, 1, 1, 2, 3, 5))):
        change = _of_tokens if draw.random() < 0.7 else _of_bytes
        data = change(draw, data, other)[:LONGEST]
    return data
