import type { HintTopics } from '../../ports/hints.ts'

/** Bytes of ids per text, so that its base64 and its head fit into a notification. */
const mostIdBytes = 5_000

type Topic = keyof HintTopics
export type TopicHint = { [T in Topic]: { topic: T; hint: HintTopics[T] } }[Topic]

type Change = HintTopics['host']['change']
const changes: readonly Change[] = ['created', 'updated', 'removed']
const isChange = (text: string | undefined): text is Change => changes.some((change) => change === text)

/** Pending hints, deduplicated and grouped by kind. */
export class Folded {
  readonly #ids = new Map<string, Set<number>>()
  readonly #lines = new Set<string>()
  readonly #epochs = new Map<number, number>()
  #size = 0

  /** Number of added hints. */
  get size(): number {
    return this.#size
  }

  add({ topic, hint }: TopicHint): void {
    this.#size++
    switch (topic) {
      case 'task':
        return hint.hostId === null
          ? void this.#lines.add(`task ${hint.change} ${hint.id}`)
          : this.#addId(`taskHost ${hint.change} ${hint.id}`, hint.hostId)
      case 'host':
      case 'cluster':
        return this.#addId(`${topic} ${hint.change}`, hint.id)
      case 'lane':
      case 'tokenEnded':
        return this.#addId(topic, hint.id)
      case 'link':
        return void this.#epochs.set(hint.id, Math.max(hint.epoch, this.#epochs.get(hint.id) ?? 0))
      case 'output':
      case 'agentRevoked':
      case 'server':
        return void this.#lines.add(`${topic} ${hint.id}`)
    }
  }

  lines(): string[] {
    const ofIds = [...this.#ids].flatMap(([head, ids]) => encodeIds(ids).map((text) => `${head} ${text}`))
    const links = [...this.#epochs].map(([id, epoch]) => `link ${id} ${epoch}`)
    return [...this.#lines, ...ofIds, ...links]
  }

  #addId(head: string, id: number): void {
    const ids = this.#ids.get(head) ?? new Set()
    this.#ids.set(head, ids)
    ids.add(id)
  }
}

type Read = (text: string) => TopicHint[] | null

const ofIds =
  (made: (id: number) => TopicHint): Read =>
  (text) =>
    decodeIds(text).map(made)

const ofChangedIds =
  (topic: 'host' | 'cluster'): Read =>
  (text) => {
    const [change, ids = ''] = text.split(' ')
    return isChange(change) ? decodeIds(ids).map((id) => ({ topic, hint: { id, change } })) : null
  }

const ofText =
  (topic: 'output' | 'agentRevoked' | 'server'): Read =>
  (id) => [{ topic, hint: { id } }]

/** Parsers by kind of line; null for a line that only a newer server understands. */
export const readers: Readonly<Record<Topic | 'taskHost', Read>> = {
  task(text) {
    const [change, id = ''] = text.split(' ')
    return isChange(change) ? [{ topic: 'task', hint: { id, hostId: null, change } }] : null
  },
  taskHost(text) {
    const [change, id = '', hosts = ''] = text.split(' ')
    if (!isChange(change)) return null
    return decodeIds(hosts).map((hostId) => ({ topic: 'task', hint: { id, hostId, change } }))
  },
  host: ofChangedIds('host'),
  cluster: ofChangedIds('cluster'),
  lane: ofIds((id) => ({ topic: 'lane', hint: { id } })),
  tokenEnded: ofIds((id) => ({ topic: 'tokenEnded', hint: { id } })),
  output: ofText('output'),
  agentRevoked: ofText('agentRevoked'),
  server: ofText('server'),
  link(text) {
    const [id, epoch] = text.split(' ').map(Number)
    if (id === undefined || epoch === undefined || !Number.isInteger(id + epoch)) return null
    return [{ topic: 'link', hint: { id, epoch } }]
  },
}

/** Appends a number from 0 to 2^53 in groups of seven bits, the lowest first. */
function pushVarint(bytes: number[], value: number): void {
  let rest = value
  while (rest >= 0x80) {
    bytes.push((rest % 0x80) + 0x80)
    rest = Math.floor(rest / 0x80)
  }
  bytes.push(rest)
}

/**
 * Encodes sorted ids as differences, in base64 texts of at most 6,700 characters. A selection of 3,000 among
 * 100,000 hosts takes 4 KB.
 */
export function encodeIds(ids: Iterable<number>): string[] {
  const texts: string[] = []
  let bytes: number[] = []
  let last = 0
  for (const id of [...new Set(ids)].sort((a, b) => a - b)) {
    if (bytes.length >= mostIdBytes) {
      texts.push(Buffer.from(bytes).toString('base64'))
      bytes = []
      last = 0
    }
    pushVarint(bytes, id - last)
    last = id
  }
  if (bytes.length > 0) texts.push(Buffer.from(bytes).toString('base64'))
  return texts
}

export function decodeIds(text: string): number[] {
  const ids: number[] = []
  let id = 0
  let value = 0
  let factor = 1
  for (const byte of Buffer.from(text, 'base64')) {
    value += (byte % 0x80) * factor
    factor *= 0x80
    if (byte >= 0x80) continue
    id += value
    ids.push(id)
    value = 0
    factor = 1
  }
  return ids
}
