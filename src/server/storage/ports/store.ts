import type { Age } from '../../../disk/agreed-clock.ts'
import type { AskedOf, authors, IndexOf, Noun, OrderOf, Records } from '../records/records.ts'
import type { ScriptRecord } from '../records/script.ts'

type IdOf<N extends Noun> = Records[N]['id']
type Value = string | number | boolean | null

/**
 * What records have to fulfil, all of it; what is undefined is not asked for. A closed set, with the fields of `asked` in
 * records.ts, so that an engine can answer each from an index.
 */
export interface Where<N extends Noun> {
  ids?: readonly IdOf<N>[] | undefined
  /** Compared with the key of the index of this name (names in lower case) where there is one, else with the field. */
  equals?: { [F in AskedOf<N, 'value'> | IndexOf<N>]?: Value | undefined } | undefined
  /** One of the fields holds this text; case is ignored. */
  contains?: { fields: readonly AskedOf<N, 'text'>[]; text: string | undefined } | undefined
  /** The time in the field, ISO 8601, is earlier; null is not. */
  before?: { [F in AskedOf<N, 'time'>]?: string | undefined } | undefined
  /** All of these are in the field: elements of a list, `[key, value]` of a map, ids of a folded set. */
  has?:
    | {
        [F in AskedOf<N, 'list' | 'map' | 'set'>]?:
          | readonly (string | number | readonly [string, string])[]
          | undefined
      }
    | undefined
}

export interface Query<N extends Noun> {
  where?: Where<N>
  /** By id, ascending unless said otherwise, or in an order of records.ts. */
  order?: 'asc' | 'desc' | OrderOf<N>
  offset?: number
  /** By default all. */
  limit?: number
  /**
   * Beside a `limit`: characters of JSON after which the records may end sooner, with one at least. For an engine that reads records
   * into memory.
   */
  limitText?: number
}

/** The records of a query, and how many there are without `offset` and `limit`. */
export interface Found<N extends Noun> {
  items: Readonly<Records[N]>[]
  total: number
}

/** Reads see what is durable, except inside a transaction. Records are immutable: change one by putting a new one. */
export interface Reads {
  get<N extends Noun>(noun: N, id: IdOf<N>): Promise<Readonly<Records[N]> | undefined>
  /** In the order of `ids`; undefined where there is none. */
  getMany<N extends Noun>(noun: N, ids: readonly IdOf<N>[]): Promise<(Readonly<Records[N]> | undefined)[]>
  /** The records whose index has this key, ascending by id. */
  find<N extends Noun>(noun: N, index: IndexOf<N>, key: string | number): Promise<Readonly<Records[N]>[]>
  query<N extends Noun>(noun: N, query?: Query<N>): Promise<Found<N>>
}

/** Reads here see every transaction that has ended, and this one's own changes. */
export interface Transaction extends Reads {
  /** Ascending, never reused, even after a removal or a restart. */
  nextId(
    noun: 'hosts' | 'scripts' | 'clusters' | 'users' | 'tokens' | 'enrollments' | 'webhooks' | 'schedules',
  ): Promise<number>
  /** The highest that was given out, also to a record that is gone; 0 before the first. */
  lastId(noun: 'enrollments'): Promise<number>
  /**
   * To be taken before reading what is decided over many records, such as who is the last ADMIN: of the transactions that
   * take it, each sees what those before it have written.
   */
  lock(name: 'admins' | 'clusters' | 'restore' | `idempotency/${string}` | `files/${string}`): Promise<void>
  put<N extends Noun>(noun: N, record: Records[N]): void
  remove<N extends Noun>(noun: N, id: IdOf<N>): void
}

/**
 * What must last (contract §1: a 2xx on a write means that the write is on disk). One port, so that another engine can
 * stand behind it; test/contracts/store.ts holds what each has to do.
 */
export interface Store extends Reads {
  /** Names this store for ever. */
  readonly storeId: string
  /**
   * Commits the changes of `work` as one, all or nothing, as if transactions ran one after the other. Resolves with the
   * value of `work` once they are durable; rejects, with nothing changed, when `work` throws, when a unique index clashes
   * (`conflict`), or when the disk refuses (`unavailable`). `work` must not wait for anything but `tx`, and it may run more
   * than once, where others have changed what it read: it leaves no trace but its value and what it does by `tx`.
   */
  transact<T>(work: (tx: Transaction) => Promise<T> | T): Promise<T>
  /**
   * From now on `changed` hears of every record that is put or removed, once that is durable and before its writer goes on;
   * of what other servers wrote, within a second. Null stands for any record: this server has missed what others wrote. For
   * caches: what was read before may be out of date now.
   */
  watch<N extends Noun>(noun: N, changed: (id: IdOf<N> | null) => void): void
  /**
   * Resolves when `watch` has told of all that any server had acknowledged before the call: for what is decided on a cache.
   * Errors: `unavailable`.
   */
  refresh(): Promise<void>
  /** Bytes of JSON that the records of a noun take, by the name of their author; of tasks those that run. */
  textBytes(noun: keyof typeof authors): Promise<ReadonlyMap<string, number>>
  /** Why writes are refused just now, or null. */
  readonly readOnlyReason: string | null
  /** Waits for what is under way, then frees the files and the lock. */
  close(): Promise<void>
}

/** Former versions of scripts, apart from the store, which holds the present ones. */
export interface ScriptVersions {
  /**
   * Durable when it resolves. A version that was kept already is written again, with the same content; of more than
   * `maxVersions` the oldest goes. Errors: `unavailable` when the disk is full.
   */
  save(script: ScriptRecord): Promise<void>
  /** Numbers of the versions kept, ascending: at most `maxVersions`. */
  list(id: number): Promise<number[]>
  read(id: number, version: number): Promise<ScriptRecord | null>
  forget(id: number): Promise<void>
  /**
   * Moves aside what is left of scripts that do not exist (a crash, or a change made beside a removal, leaves their
   * versions behind), and removes it so many days later; 0 = never. Answers the folder, where there was any.
   */
  sweep(exists: (id: number) => Promise<boolean>, days: number, age: Age, now: number): Promise<string | null>
}

/** Former versions kept of one script: almost three years of a script that is changed daily. */
export const maxVersions = 1000
