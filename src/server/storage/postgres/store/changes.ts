import { type AnyRecord, type Id, indexList, type Key, type Noun, nouns } from '../../records/records.ts'
import type { Ask, Statement } from '../connection/database.ts'
import { createReads } from './reads.ts'
import { idOf, isNumbered, type Numbered, type StoredNoun, type Table, tableOf, uniqueOf } from './tables.ts'

/** Record by id; null if it was removed. */
type ById = Map<Id, AnyRecord | null>

/** Puts and removals of a transaction or a part of it, sent to PostgreSQL when it must see them. */
export class Changes {
  readonly #below: Changes | null
  readonly #all = new Map<Noun, ById>()
  readonly #unsent = new Map<Noun, ById>()
  #isSent = false

  /** `below`: earlier changes of the same transaction, which these override. */
  constructor(below: Changes | null = null) {
    this.#below = below
  }

  /** Whether any of these, apart from those below, was sent to PostgreSQL. */
  get isSent(): boolean {
    return this.#isSent
  }

  set(noun: Noun, id: Id, record: AnyRecord | null): void {
    for (const map of [this.#all, this.#unsent]) {
      const byId = map.get(noun) ?? new Map<Id, AnyRecord | null>()
      map.set(noun, byId.set(id, record))
    }
  }

  /** Undefined if this transaction has not changed the record. */
  get(noun: Noun, id: Id): AnyRecord | null | undefined {
    const record = this.#all.get(noun)?.get(id)
    return record === undefined ? this.#below?.get(noun, id) : record
  }

  /** Changes without those below. */
  own(noun: Noun): ReadonlyMap<Id, AnyRecord | null> {
    return this.#all.get(noun) ?? new Map()
  }

  of(noun: Noun): ById {
    return new Map([...(this.#below?.of(noun) ?? []), ...(this.#all.get(noun) ?? [])])
  }

  /** Applies these changes to the records found by a key. */
  through(noun: Noun, index: string, key: Key, found: AnyRecord[]): AnyRecord[] {
    const changes = this.of(noun)
    if (changes.size === 0) return found
    const indexed = indexList[noun].find(({ name }) => name === index)
    const ours = [...changes.values()].filter((record) => record !== null && indexed?.key(record) === key)
    const others = found.filter(({ id }) => !changes.has(id))
    return [...others, ...(ours as AnyRecord[])].sort((a, b) => (a.id < b.id ? -1 : 1))
  }

  /** Adds these changes to those below. */
  merge(): void {
    const below = this.#below
    if (!below) return
    for (const [noun, byId] of this.#all) {
      const unsent = this.#unsent.get(noun)
      for (const [id, record] of byId)
        if (unsent?.has(id)) below.set(noun, id, record)
        else below.#note(noun, id, record)
    }
  }

  /** Reads the previous state of unsent records of nouns with unique indexes. */
  async see({ ask, seen }: Open, only?: Noun): Promise<void> {
    for (const [noun, byId] of this.#unsent) {
      if (uniqueOf(noun).length === 0 || (only !== undefined && noun !== only)) continue
      const unread = [...byId.keys()].filter((id) => !seen.has(noun, id))
      const read = unread.length === 0 ? [] : await createReads(ask).getMany(noun, unread)
      for (const [at, id] of unread.entries()) seen.note(noun, id, read[at])
    }
  }

  /** Sends unsent changes, of one noun or of all. */
  async send(open: Open, only?: Noun): Promise<void> {
    if (this.#below) {
      // Works share the transaction: read the previous state to separate their changes.
      await this.#below.see(open, only)
      await this.see(open, only)
      await this.#below.send(open, only)
    }
    for (const noun of nouns) {
      const byId = this.#unsent.get(noun)
      if (!byId || (only !== undefined && noun !== only)) continue
      this.#unsent.delete(noun)
      this.#isSent = true
      await sendChanges(tableOf(noun), byId, open)
    }
  }

  #note(noun: Noun, id: Id, record: AnyRecord | null): void {
    const byId = this.#all.get(noun) ?? new Map<Id, AnyRecord | null>()
    this.#all.set(noun, byId.set(id, record))
  }
}

/** Records per statement: a whole fleet would exceed the statement timeout. */
const maxSent = 2000

/** Lock in id order to avoid deadlocks. */
const inOrder = (a: { id: Id }, b: { id: Id }) => (a.id < b.id ? -1 : 1)

async function sendChanges(table: Table, byId: ReadonlyMap<Id, AnyRecord | null>, open: Open): Promise<void> {
  const { noun } = table
  const put = [...byId.values()].filter((record) => record !== null).sort(inOrder)
  const removed = [...byId].flatMap(([id, record]) => (record === null ? [idOf(table, id)] : []))
  const highest = put.at(-1)?.id
  if (isNumbered(noun) && typeof highest === 'number') await open.ids.raise(open.ask, noun, highest)
  for (let at = 0; at < Math.max(put.length, removed.length); at += maxSent)
    await sendSome(table, put.slice(at, at + maxSent), removed.slice(at, at + maxSent), open)
}

async function sendSome(
  table: Table,
  put: readonly AnyRecord[],
  removed: readonly unknown[],
  { ask, sent }: Open,
): Promise<void> {
  const { noun } = table
  const rows = await ask<{ id: string; xid: string }>(statementOf(table), [
    ...putValues(table, put),
    removed.filter((id) => id !== undefined),
  ])
  for (const { id, xid } of rows) {
    sent.xid = xid
    sent.changed.push({ noun, id: isNumbered(noun) ? Number(id) : id })
  }
}

/** Names of columns in SQL, `id` and `rec` first. */
const namesOf = ({ columns }: Table) => ['id', 'rec', ...columns.map(({ name }) => `"${name}"`)]

/** SQL that puts records with the parameters of `putValues`, behind `insert into`. */
export function putText(table: Table): string {
  const { noun, idType, columns } = table
  const names = namesOf(table)
  // `unnest` would flatten nested arrays.
  const types = [idType, 'json', ...columns.map(({ type }) => (type === 'bigint[]' ? 'text' : type))]
  const arrays = types.map((type, at) => `$${at + 1}::${type}[]`)
  const values = ['id', 'rec', ...columns.map(({ name, type }) => `"${name}"::${type}`)]
  return `rsm.${noun}(${names.join(', ')})
        select ${values.join(', ')} from unnest(${arrays.join(', ')}) as new(${names.join(', ')})`
}

/** An array for each column. */
export const putValues = (table: Table, put: readonly AnyRecord[]): unknown[] => [
  put.map((record) => idOf(table, record.id)),
  put.map((record) => JSON.stringify(record)),
  ...table.columns.map((column) => put.map((record) => column.value(record))),
]

/** Statement that puts records, removes an array of ids, and notes both for other servers. */
function statementOf(table: Table): Statement {
  const { noun, idType } = table
  const names = namesOf(table)
  return {
    name: `store put ${noun}`,
    text: `with put as (
        insert into ${putText(table)}
        on conflict (id) do update set ${names
          .slice(1)
          .map((name) => `${name} = excluded.${name}`)
          .join(', ')}
        returning id),
      gone as (delete from rsm.${noun} where id = any($${names.length + 1}::${idType}[]) returning id)
      insert into rsm.changes(noun, id) select '${noun}', id::text from put union all select '${noun}', id::text from gone
      returning id, xid::text`,
  }
}

/** A running transaction of PostgreSQL. */
export interface Open {
  readonly ask: Ask
  readonly ids: Ids
  readonly sent: Sent
  readonly seen: Seen
}

/** Records that a transaction changed in PostgreSQL, and its transaction id. */
export interface Sent {
  xid: string | null
  readonly changed: { noun: StoredNoun; id: Id }[]
}

/** Records that a transaction read, as they were before its changes. */
export class Seen {
  readonly #byNoun = new Map<Noun, Map<Id, AnyRecord | undefined>>()

  note(noun: Noun, id: Id, record: AnyRecord | undefined): void {
    const byId = this.#byNoun.get(noun) ?? new Map<Id, AnyRecord | undefined>()
    if (!byId.has(id)) this.#byNoun.set(noun, byId.set(id, record))
  }

  has(noun: Noun, id: Id): boolean {
    return this.#byNoun.get(noun)?.has(id) === true
  }

  get(noun: Noun, id: Id): AnyRecord | undefined {
    return this.#byNoun.get(noun)?.get(id)
  }
}

/** Ids from sequences, which a rollback does not reset. */
interface Ids {
  next(ask: Ask, noun: Numbered): Promise<number>
  last(ask: Ask, noun: Numbered): Promise<number>
  /** Ensures that no id up to this one is given out again. */
  raise(ask: Ask, noun: Numbered, id: number): Promise<void>
}

export function createIds(): Ids {
  /** Highest id known to be given out. */
  const known = new Map<Numbered, number>()
  const note = (noun: Numbered, id: number): number => {
    known.set(noun, Math.max(known.get(noun) ?? 0, id))
    return id
  }
  return {
    async next(ask, noun) {
      const statement = { name: `store next ${noun}`, text: `select nextval('rsm.${noun}_ids') as id` }
      const [row] = await ask<{ id: number }>(statement)
      return note(noun, row?.id ?? 0)
    },
    async last(ask, noun) {
      const [row] = await ask<{ id: number }>(`select ${lastOf(noun)} as id`)
      return note(noun, row?.id ?? 0)
    },
    async raise(ask, noun, id) {
      if (id <= (known.get(noun) ?? 0)) return
      // Uses `nextval`, because `setval` could reset ids that another server gets at the same time.
      await ask(
        `select count(nextval('rsm.${noun}_ids')) from generate_series(${lastOf(noun)} + 1, $1::bigint)`,
        [id],
      )
      note(noun, id)
    },
  }
}

const lastOf = (noun: Numbered) =>
  `(select case when is_called then last_value else 0 end from rsm.${noun}_ids)`
