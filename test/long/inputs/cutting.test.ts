import { appendFileSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import test from 'ava'
import fc from 'fast-check'
import { ExecutionOutput } from '../../../src/agent/executions/output/execution-output.ts'

type Stream = 'stdout' | 'stderr'
const streams = ['stdout', 'stderr'] as const
const marker = /\n\[rsm: (\d+) bytes left out here: the output passed its limit\]\n/

interface Kept {
  stdout: string
  stderr: string
  /** In the order of the sequence. */
  chunks: { stream: Stream; text: string; bytes: number }[]
}

function readAll(output: ExecutionOutput): Kept {
  const chunks = Array.from({ length: output.count }, (_, sequence) => {
    const { stream, content } = output.read(sequence)
    return { stream, text: content.toString(), bytes: content.length }
  })
  const of = (stream: Stream) =>
    chunks
      .filter((chunk) => chunk.stream === stream)
      .map(({ text }) => text)
      .join('')
  return { stdout: of('stdout'), stderr: of('stderr'), chunks }
}

/** A script's writes, and the agent's actions between them. */
const act = fc.oneof(
  { weight: 5, arbitrary: fc.record({ stream: fc.constantFrom(...streams), size: fc.nat(9) }) },
  { weight: 3, arbitrary: fc.constant('cut' as const) },
  { weight: 1, arbitrary: fc.constant('restart' as const) },
)
const anyBytes = fc.oneof(
  fc.uint8Array({ maxLength: 60 }),
  fc
    .string({ unit: fc.constantFrom('a', 'é', '€', '😀', '\0', '\n'), maxLength: 30 })
    .map((text) => new Uint8Array(Buffer.from(text))),
  // The first and the continuing bytes of characters, in any order.
  fc
    .array(fc.constantFrom(0xc3, 0xa9, 0xe2, 0x82, 0xac, 0xf0, 0x9f, 0x98, 0x80, 0xed, 0xf5, 0xc0, 0x41), {
      maxLength: 40,
    })
    .map((bytes) => new Uint8Array(bytes)),
)

/** Writes all of `bytes`, in the pieces and with the cuts and restarts of `acts`. */
function play(
  bytes: Record<Stream, Uint8Array>,
  acts: readonly ('cut' | 'restart' | { stream: Stream; size: number })[],
  maxBytes: number,
): { summary: ReturnType<ExecutionOutput['finish']>; kept: Kept; sent: Kept } {
  const directory = mkdtempSync(join(tmpdir(), 'rsm-cutting-'))
  try {
    const written = { stdout: 0, stderr: 0 }
    const write = (stream: Stream, size: number) => {
      appendFileSync(join(directory, stream), bytes[stream].subarray(written[stream], written[stream] + size))
      written[stream] += size
    }
    let output = new ExecutionOutput(directory, maxBytes, false)
    let sent: Kept = { stdout: '', stderr: '', chunks: [] }
    for (const one of acts) {
      if (one === 'restart') {
        output.close()
        output = new ExecutionOutput(directory, maxBytes, false)
      } else if (one === 'cut') {
        output.cut()
        sent = readAll(output)
      } else write(one.stream, one.size)
    }
    for (const stream of streams) write(stream, bytes[stream].length)
    const summary = output.finish()
    output.close()
    // The end was not acknowledged, so the next agent reads everything again.
    const next = new ExecutionOutput(directory, maxBytes, true)
    const kept = readAll(next)
    next.close()
    return { summary, kept, sent }
  } finally {
    rmSync(directory, { recursive: true, force: true })
  }
}

test('chunks decode to the whole output, however it is written and cut and whenever the agent restarts', (t) => {
  fc.assert(
    fc.property(anyBytes, anyBytes, fc.array(act, { maxLength: 40 }), (stdout, stderr, acts) => {
      const { summary, kept, sent } = play({ stdout, stderr }, acts, 1 << 20)
      t.is(kept.stdout, Buffer.from(stdout).toString())
      t.is(kept.stderr, Buffer.from(stderr).toString())
      // Chunks sent before a restart are the same after it.
      t.deepEqual(kept.chunks.slice(0, sent.chunks.length), sent.chunks)
      t.is(summary.lastSequence, kept.chunks.length - 1)
      t.deepEqual([summary.stdoutBytes, summary.stderrBytes], [stdout.length, stderr.length])
      t.false(summary.truncated)
    }),
    { numRuns: 300 },
  )
})

const big = (size: number, seed: number) =>
  Uint8Array.from({ length: size }, (_, at) => 97 + ((at * 7 + seed) % 26))

test('around every limit, head, marker and tail hold exactly the written text, over both streams', (t) => {
  const limits = fc.constantFrom(1024, 4096, 131_071, 131_072, 131_073, 300_000)
  const around = (limit: number) => fc.integer({ min: Math.max(0, limit - 3), max: limit + 3 })
  const sizes = limits.chain((limit) =>
    fc.record({
      limit: fc.constant(limit),
      total: fc.oneof(around(limit), around(limit * 2), fc.nat(limit * 3)),
      share: fc.double({ min: 0, max: 1, noNaN: true }),
      acts: fc.array(
        fc.oneof(
          fc.constant('cut' as const),
          fc.constant('restart' as const),
          fc.record({ stream: fc.constantFrom(...streams), size: fc.nat(limit) }),
        ),
        { maxLength: 12 },
      ),
    }),
  )
  fc.assert(
    fc.property(sizes, ({ limit, total, share, acts }) => {
      const outBytes = Math.floor(total * share)
      const bytes = { stdout: big(outBytes, 1), stderr: big(total - outBytes, 5) }
      const { summary, kept } = play(bytes, acts, limit)
      t.deepEqual([summary.stdoutBytes, summary.stderrBytes], [outBytes, total - outBytes])
      t.is(summary.truncated, total > limit)
      const whole = kept.stdout + kept.stderr
      if (total <= limit) {
        t.is(whole, Buffer.from(bytes.stdout).toString() + Buffer.from(bytes.stderr).toString())
        return
      }
      const leftOut = Number(marker.exec(whole)?.[1])
      t.is(whole.replace(marker, '').length, total - leftOut)
      t.true(total - leftOut <= limit, 'at most the limit is kept')
      // At most the head's share of one stream, and a full tail if the output is long enough.
      for (const stream of streams) {
        const [head = '', tail = ''] = kept[stream].split(marker).filter((_, at) => at !== 1)
        const text = Buffer.from(bytes[stream]).toString()
        if (marker.test(kept[stream])) {
          t.true(text.startsWith(head) && text.endsWith(tail))
        }
      }
      const tailBytes = Math.min(65_536, Math.floor(limit / 2))
      const kindOf = kept.chunks.findIndex(({ text }) => marker.test(text))
      const after = kept.chunks.slice(kindOf + 1).reduce((sum, { bytes: size }) => sum + size, 0)
      t.true(after <= tailBytes, `${after} bytes after the marker`)
      t.true(
        after >=
          Math.min(
            tailBytes,
            total - kept.chunks.slice(0, kindOf).reduce((sum, { bytes: size }) => sum + size, 0),
          ),
        'a full tail',
      )
    }),
    { numRuns: 150 },
  )
})
