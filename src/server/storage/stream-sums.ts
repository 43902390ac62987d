import { createHash } from 'node:crypto'
import { jsonbSafe } from './jsonb-safe.ts'
import { type Items, type Kind, kinds, newline, type Reader, type Writer } from './streams.ts'

export interface Sum {
  readonly counts: Readonly<Record<string, number>>
  readonly bytes: number
  /** Digest of all items in order, hex. */
  readonly sha256: string
}

export type Sums = Readonly<Record<Kind, Sum>>

interface SumInput {
  readonly counted: string
  readonly count: number
  readonly parts: readonly (string | Uint8Array)[]
}

/** Sorts fields, because PostgreSQL keeps some records as `jsonb`, which has its own order. */
const inOrder = (_: string, value: unknown): unknown =>
  typeof value === 'object' && value !== null && !Array.isArray(value)
    ? Object.fromEntries(Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1)))
    : value

function linesIn(bytes: Uint8Array): number {
  let lines = 0
  for (let at = bytes.indexOf(newline); at >= 0; at = bytes.indexOf(newline, at + 1)) lines++
  return lines
}

const json = (counted: string, value: unknown, count = 1): SumInput => ({
  counted,
  count,
  parts: [JSON.stringify(value, inOrder), '\n'],
})

/** JSON without the characters that `jsonb` rejects. */
const safeJson = (counted: string, value: unknown, count = 1): SumInput => ({
  counted,
  count,
  parts: [jsonbSafe(value, inOrder), '\n'],
})

const bytes = (counted: string, count: number, part: Uint8Array): SumInput => ({
  counted,
  count,
  parts: [part],
})

const sumInput: { readonly [K in Kind]: (item: Items[K]) => SumInput } = {
  identity: (item) => json('stores', item),
  records: ({ noun, record }) => ({ counted: noun, count: 1, parts: [noun, JSON.stringify(record), '\n'] }),
  executions: (item) => safeJson('executions', item),
  results: (item) => safeJson('results', item, 'results' in item ? item.results.length : 0),
  versions: (item) => ({ counted: 'versions', count: 1, parts: [JSON.stringify(item), '\n'] }),
  output: (item) =>
    item instanceof Uint8Array ? bytes('output', linesIn(item), item) : json('output', item, 0),
  recordings: (item) =>
    item instanceof Uint8Array ? bytes('recordings', 0, item) : json('recordings', item),
  files: (item) => (item instanceof Uint8Array ? bytes('files', 0, item) : json('files', item)),
  audit: (lines) => bytes('audit', linesIn(lines), lines),
  heads: (item) => json('heads', item),
  presence: (item) => json('presence', item),
  metrics: (item) => json('samples', item, item.lines.length),
}

async function* summed<K extends Kind>(
  kind: K,
  items: AsyncIterable<Items[K]>,
): AsyncGenerator<Items[K], Sum> {
  const hash = createHash('sha256')
  const counts: Record<string, number> = {}
  let bytes = 0
  for await (const item of items) {
    const { counted, count, parts } = sumInput[kind](item)
    counts[counted] = (counts[counted] ?? 0) + count
    for (const part of parts) {
      hash.update(part)
      bytes += part.length
    }
    yield item
  }
  return { counts, bytes, sha256: hash.digest('hex') }
}

async function copyKind<K extends Kind>(kind: K, from: Reader, to: Pick<Writer, K>): Promise<Sum> {
  const items = summed(kind, from[kind]())
  let sum: Sum | undefined
  async function* passing(): AsyncGenerator<Items[K]> {
    sum = yield* items
  }
  await to[kind](passing())
  if (sum === undefined) throw new Error(`${kind} were not read to the end`)
  return sum
}

type OnProgress = (kind: Kind, sum: Sum) => void

/** Copies a store in bounded memory; calls `onProgress` after each kind. */
export async function copyStore(from: Reader, to: Writer, onProgress: OnProgress): Promise<Sums> {
  const sums = {} as Record<Kind, Sum>
  for (const kind of kinds) {
    sums[kind] = await copyKind(kind, from, to)
    onProgress(kind, sums[kind])
  }
  return sums
}

async function drain(items: AsyncIterable<unknown>): Promise<void> {
  for await (const _ of items);
}

const nowhere = Object.fromEntries(kinds.map((kind) => [kind, drain])) as unknown as Writer

export const sumsOf = (store: Reader, onProgress: OnProgress): Promise<Sums> =>
  copyStore(store, nowhere, onProgress)

export const differing = (one: Sums, other: Sums): Kind[] =>
  kinds.filter((kind) => one[kind].sha256 !== other[kind].sha256)
