import {
  type AnyRecord,
  type AskedOf,
  asked,
  type Id,
  type Index,
  type IndexOf,
  indexList,
  type Noun,
  nouns,
  orders,
} from '../../records/records.ts'

/** Nouns with a table; executions have tables of their own. */
export type StoredNoun = Exclude<Noun, 'executions'>
type ColumnType = 'text' | 'bigint' | 'boolean' | 'jsonb' | 'bigint[]'
type Asking = 'value' | 'text' | 'time' | 'list' | 'map' | 'set'
type OrderColumn<N extends Noun> = N extends keyof typeof orders
  ? `${Extract<keyof (typeof orders)[N], string>}Order`
  : never

/** Types of the columns other than `id` and `rec`. */
const types = {
  hosts: {
    hostname: 'text',
    agentId: 'text',
    agentToken: 'text',
    ip: 'text',
    tags: 'jsonb',
    hostnameOrder: 'text',
  },
  scripts: { name: 'text', description: 'text', type: 'text', category: 'text', tags: 'jsonb' },
  clusters: { name: 'text', description: 'text', hostIds: 'jsonb' },
  users: { username: 'text', email: 'text', role: 'text', enabled: 'boolean' },
  tokens: { tokenHash: 'text', userId: 'bigint', name: 'text', kind: 'text', expiresAt: 'text' },
  enrollments: { tokenHash: 'text', name: 'text', expiresAt: 'text' },
  tombstones: {},
  tasks: {
    status: 'text',
    scriptId: 'bigint',
    clusterId: 'bigint',
    createdBy: 'text',
    hostSet: 'bigint[]',
    completedAt: 'text',
    scheduleId: 'bigint',
    fileId: 'text',
  },
  idempotency: { createdAt: 'text' },
  terminals: { status: 'text', hostId: 'bigint', user: 'text', userId: 'bigint', endedAt: 'text' },
  files: { expiresAt: 'text' },
  runs: {},
  keys: {},
  webhooks: { name: 'text' },
  deliveries: { webhookId: 'bigint', queue: 'text', endedAt: 'text' },
  schedules: { name: 'text', ownerId: 'bigint', fileId: 'text', dueAtOrder: 'text' },
  slots: { scheduleId: 'bigint' },
} satisfies {
  [N in StoredNoun]: Record<IndexOf<N> | AskedOf<N, Asking> | OrderColumn<N>, ColumnType>
}

/** A column that queries use, filled from the record. */
interface Column {
  readonly name: string
  readonly type: ColumnType
  /** Value as a parameter of the type, or as its text form; null matches no query. */
  value(record: AnyRecord): unknown
}

export interface Table {
  readonly noun: StoredNoun
  readonly idType: 'text' | 'bigint'
  readonly columns: readonly Column[]
}

/** Nouns whose ids are numbers from a sequence. */
export const numbered = [
  'hosts',
  'scripts',
  'clusters',
  'users',
  'tokens',
  'enrollments',
  'webhooks',
  'schedules',
] as const
export type Numbered = (typeof numbered)[number]

export const isNumbered = (noun: Noun): noun is Numbered => (numbered as readonly Noun[]).includes(noun)

const fieldOf = (record: AnyRecord, field: string): unknown =>
  (record as unknown as Record<string, unknown>)[field]

/** Converts a value to a parameter; undefined if no value of the type can equal it. */
export function parameterOf(type: ColumnType, value: unknown): unknown {
  switch (type) {
    case 'text':
      return typeof value === 'string' ? plainText(value) : undefined
    case 'bigint':
      return Number.isSafeInteger(value) ? value : undefined
    case 'boolean':
      return typeof value === 'boolean' ? value : undefined
    case 'jsonb':
      return JSON.stringify(plainJson(value))
    case 'bigint[]':
      return typeof value === 'string' ? `{${blocksOfSet(value).join(',')}}` : undefined
  }
}

const askedValue = (how: Asking, value: unknown): unknown =>
  how === 'text' && typeof value === 'string' ? value.toLowerCase() : (value ?? null)

function columnsOf(noun: StoredNoun): Column[] {
  const column = (name: string, type: ColumnType, value: (record: AnyRecord) => unknown): Column => ({
    name,
    type,
    value(record) {
      const field = value(record)
      return field === null ? null : (parameterOf(type, field) ?? null)
    },
  })
  const fields: Readonly<Record<string, Asking>> = asked[noun]
  const ordered: Readonly<Partial<Record<Noun, Record<string, { key: unknown }>>>> = orders
  return Object.entries<ColumnType>(types[noun]).map(([name, type]) => {
    const index = indexList[noun].find((one) => one.name === name)
    if (index) return column(name, type, (record) => index.key(record))
    const how = fields[name]
    if (how) return column(name, type, (record) => askedValue(how, fieldOf(record, name)))
    const order = ordered[noun]?.[name.replace(/Order$/, '')]
    return column(name, type, order?.key as (record: AnyRecord) => string)
  })
}

const isStored = (noun: Noun): noun is StoredNoun => noun !== 'executions'

const tables = new Map<Noun, Table>(
  nouns
    .filter(isStored)
    .map((noun) => [noun, { noun, idType: isNumbered(noun) ? 'bigint' : 'text', columns: columnsOf(noun) }]),
)

export function tableOf(noun: Noun): Table {
  const table = tables.get(noun)
  if (!table) throw new Error(`${noun} are not in the tables of the store`)
  return table
}

export const uniqueOf = (noun: Noun): readonly Index[] => indexList[noun].filter(({ unique }) => unique)

/** Converts an id to a parameter; undefined if no record of the table can have it. */
export const idOf = ({ idType }: Table, id: Id): unknown => parameterOf(idType, id)

/** Ids are below 2^32 (contract §3: numbers that count hosts). */
const depth = 32

/** Number, in a binary tree, of the block of 2^`size` ids that contains this one. */
const blockOf = (id: number, size: number): number => 2 ** (depth - size) + Math.floor(id / 2 ** size)

/** Splits a run of ids into blocks: few, however long it is. */
function* blocksOfRun(first: number, last: number): Generator<number> {
  let at = first
  while (at <= last) {
    let size = 0
    while (size < depth && at % 2 ** (size + 1) === 0 && at + 2 ** (size + 1) - 1 <= last) size++
    yield blockOf(at, size)
    at += 2 ** size
  }
}

/** Blocks of a folded set (core/tasks/id-set.ts), for an inverted index: an id is in the set if one of its blocks is. */
export function blocksOfSet(folded: string): number[] {
  if (folded === '') return []
  return folded.split(',').flatMap((run) => {
    const [first, last = first] = run.split('-').map(Number)
    return first === undefined || last === undefined ? [] : [...blocksOfRun(first, last)]
  })
}

/** All blocks that contain an id; none for an invalid one. */
export function blocksWith(id: number): number[] {
  if (!Number.isInteger(id) || id < 0 || id >= 2 ** depth) return []
  return Array.from({ length: depth + 1 }, (_, size) => blockOf(id, size))
}

/** Characters that PostgreSQL text cannot hold: U+0000 and halves of surrogate pairs; and U+FFFF, which escapes them. */
const unfit = /[\0\uffff\p{Surrogate}]/u
const everyUnfit = /[\0\uffff\p{Surrogate}]/gu

/** Escapes a character as U+FFFF and a noncharacter for each of its four hex digits, which ordinary text never contains. */
const escaped = (character: string): string =>
  `\uffff${character
    .charCodeAt(0)
    .toString(16)
    .padStart(4, '0')
    .replaceAll(/./g, (digit) => String.fromCharCode(0xfdd0 + Number.parseInt(digit, 16)))}`

/** Maps each text to a distinct one that PostgreSQL can hold, for comparisons only. */
export const plainText = (text: string): string =>
  unfit.test(text) ? text.replaceAll(everyUnfit, escaped) : text

/** Applies `plainText` to all text in a JSON value. */
export function plainJson(value: unknown): unknown {
  if (typeof value === 'string') return plainText(value)
  if (Array.isArray(value)) return value.map(plainJson)
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [plainText(key), plainJson(item)]))
}
