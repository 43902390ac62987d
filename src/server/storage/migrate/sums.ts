import { createHash } from 'node:crypto'
import { jsonbSafe } from '../jsonb-safe.ts'
import { type Items, type Kind, kinds, type Reader, type Writer } from './kinds.ts'

/** What a stream of one kind amounts to. */
export interface Sum {
  /** By what was counted. */
  readonly counts: Readonly<Record<string, number>>
  readonly bytes: number
  /** Of all items in their order, hex. */
  readonly sha256: string
}

export type Sums = Readonly<Record<Kind, Sum>>

interface Weighed {
  readonly counted: string
  readonly count: number
  /** What the digest is of. */
  readonly parts: readonly (string | Uint8Array)[]
}

/** Fields in one order: PostgreSQL keeps some records as `jsonb`, which has an order of its own. */
const inOrder = (_: string, value: unknown): unknown =>
  typeof value === 'object' && value !== null && !Array.isArray(value)
    ? Object.fromEntries(Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1)))
    : value

const newline = 10

function linesIn(bytes: Uint8Array): number {
  let lines = 0
  for (let at = bytes.indexOf(newline); at >= 0; at = bytes.indexOf(newline, at + 1)) lines++
  return lines
}

const weigh: { readonly [K in Kind]: (item: Items[K]) => Weighed } = {
  identity: (item) => ({ counted: 'stores', count: 1, parts: [JSON.stringify(item, inOrder), '\n'] }),
  records: ({ noun, record }) => ({ counted: noun, count: 1, parts: [noun, JSON.stringify(record), '\n'] }),
  executions: (item) => ({ counted: 'executions', count: 1, parts: [jsonbSafe(item, inOrder), '\n'] }),
  results: (item) => ({
    counted: 'results',
    count: item.results.length,
    parts: [JSON.stringify([item.taskId, item.script, item.gates]), jsonbSafe(item.results, inOrder), '\n'],
  }),
  versions: (item) => ({ counted: 'versions', count: 1, parts: [JSON.stringify(item), '\n'] }),
  output: ({ taskId, id, hostId, stream, sequence, at, phase = 'SCRIPT', json }) => ({
    counted: 'output',
    count: 1,
    parts: [`${taskId} ${id} ${hostId} ${stream} ${sequence} ${at} ${phase} ${json.length}\n`, json],
  }),
  recordings: (item) =>
    item instanceof Uint8Array
      ? { counted: 'recordings', count: 0, parts: [item] }
      : { counted: 'recordings', count: 1, parts: [`${item.id} ${item.bytes}\n`] },
  files: (item) =>
    item instanceof Uint8Array
      ? { counted: 'files', count: 0, parts: [item] }
      : {
          counted: 'files',
          count: 1,
          parts: [`${item.id} ${item.bytes} ${item.isComplete} ${item.content}\n`],
        },
  audit: (bytes) => ({ counted: 'audit', count: linesIn(bytes), parts: [bytes] }),
  heads: (item) => ({ counted: 'heads', count: 1, parts: [JSON.stringify(item, inOrder), '\n'] }),
  presence: (item) => ({ counted: 'presence', count: 1, parts: [JSON.stringify(item, inOrder), '\n'] }),
  metrics: ({ hostId, day, lines }) => ({
    counted: 'samples',
    count: lines.length,
    parts: [`${hostId} ${day} ${lines.length}\n`, lines.join('\n')],
  }),
}

/** Passes the items on; answers what they amount to with the last of them. */
async function* summed<K extends Kind>(
  kind: K,
  items: AsyncIterable<Items[K]>,
): AsyncGenerator<Items[K], Sum> {
  const hash = createHash('sha256')
  const counts: Record<string, number> = {}
  let bytes = 0
  for await (const item of items) {
    const { counted, count, parts } = weigh[kind](item)
    counts[counted] = (counts[counted] ?? 0) + count
    for (const part of parts) {
      hash.update(part)
      bytes += part.length
    }
    yield item
  }
  return { counts, bytes, sha256: hash.digest('hex') }
}

/** Writes a stream, and answers what it amounted to. */
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

type Told = (kind: Kind, sum: Sum) => void

/** Moves all of a store, in bounded memory; `told` hears of each kind that is done. */
export async function copyStore(from: Reader, to: Writer, told: Told): Promise<Sums> {
  const sums = {} as Record<Kind, Sum>
  for (const kind of kinds) {
    sums[kind] = await copyKind(kind, from, to)
    told(kind, sums[kind])
  }
  return sums
}

async function drain(items: AsyncIterable<unknown>): Promise<void> {
  for await (const _ of items);
}

const nowhere = Object.fromEntries(kinds.map((kind) => [kind, drain])) as unknown as Writer

/** What a store amounts to. */
export const sumsOf = (store: Reader, told: Told): Promise<Sums> => copyStore(store, nowhere, told)

/** The kinds of which two stores don't hold the same. */
export const differing = (one: Sums, other: Sums): Kind[] =>
  kinds.filter((kind) => one[kind].sha256 !== other[kind].sha256)
