import type { Age } from '../../../disk/agreed-clock.ts'
import type { AskedOf, authors, IndexOf, Noun, OrderOf, Records } from '../records/records.ts'
import type { ScriptRecord } from '../records/script.ts'

type IdOf<N extends Noun> = Records[N]['id']
type Value = string | number | boolean | null

/**
 * Conditions on records, all of which must hold; undefined ones are ignored. A closed set, with the fields of
 * `asked` in records.ts, so that each implementation can answer from an index.
 */
export interface Where<N extends Noun> {
  ids?: readonly IdOf<N>[] | undefined
  /** Compared with the index of this name (names in lower case) if there is one, else with the field. */
  equals?: { [F in AskedOf<N, 'value'> | IndexOf<N>]?: Value | undefined } | undefined
  /** One of the fields contains this text, ignoring case. */
  contains?: { fields: readonly AskedOf<N, 'text'>[]; text: string | undefined } | undefined
  /** The time in the field, ISO 8601, is earlier; null never matches. */
  before?: { [F in AskedOf<N, 'time'>]?: string | undefined } | undefined
  /** The field has all of these: elements of a list, `[key, value]` of a map, ids of a folded set. */
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
  /** By id, ascending by default, or an order of records.ts. */
  order?: 'asc' | 'desc' | OrderOf<N>
  offset?: number
  /** Default: all. */
  limit?: number
  /**
   * With a `limit`: characters of JSON after which the records may stop, after at least one. For
   * implementations that read records into memory.
   */
  limitText?: number
}

/** Records of a query, and their number without `offset` and `limit`. */
export interface Found<N extends Noun> {
  items: Readonly<Records[N]>[]
  total: number
}

/** Reads outside a transaction see durable state. Records are immutable: change one by putting a new one. */
export interface Reads {
  get<N extends Noun>(noun: N, id: IdOf<N>): Promise<Readonly<Records[N]> | undefined>
  /** In the order of `ids`; undefined for unknown ones. */
  getMany<N extends Noun>(noun: N, ids: readonly IdOf<N>[]): Promise<(Readonly<Records[N]> | undefined)[]>
  /** Records with this index key, ascending by id. */
  find<N extends Noun>(noun: N, index: IndexOf<N>, key: string | number): Promise<Readonly<Records[N]>[]>
  query<N extends Noun>(noun: N, query?: Query<N>): Promise<Found<N>>
}

/** Reads see every transaction that has ended, and this one's own changes. */
export interface Transaction extends Reads {
  /** Ascending, never reused, even after a removal or a restart. */
  nextId(
    noun: 'hosts' | 'scripts' | 'clusters' | 'users' | 'tokens' | 'enrollments' | 'webhooks' | 'schedules',
  ): Promise<number>
  /** Highest id given out, even if its record is gone; 0 before the first. */
  lastId(noun: 'enrollments'): Promise<number>
  /**
   * Takes a lock; call it before reading for a decision over many records, such as who is the last ADMIN.
   * Each transaction that takes it sees the writes of the earlier ones.
   */
  lock(name: 'admins' | 'clusters' | 'restore' | `idempotency/${string}` | `files/${string}`): Promise<void>
  put<N extends Noun>(noun: N, record: Records[N]): void
  remove<N extends Noun>(noun: N, id: IdOf<N>): void
}

/**
 * Durable records (contract §1: a 2xx on a write means that it is on disk). test/contracts/store.ts holds the
 * requirements for implementations.
 */
export interface Store extends Reads {
  /** Permanent id of this store. */
  readonly storeId: string
  /**
   * Commits the changes of `work` atomically, serializable with other transactions. Resolves with the value
   * of `work` once they are durable. Rejects, with nothing changed, if `work` throws, a unique index clashes
   * (`conflict`), or the disk refuses (`unavailable`). `work` must wait for `tx` only. It may run more than
   * once, if other transactions changed what it read, so it must have no other side effects.
   */
  transact<T>(work: (tx: Transaction) => Promise<T> | T): Promise<T>
  /**
   * Calls `changed` for every record put or removed, once that is durable and before its writer continues;
   * for writes of other servers, within a second. Null means any record: this server missed writes of others.
   * For caches: earlier reads may now be stale.
   */
  watch<N extends Noun>(noun: N, changed: (id: IdOf<N> | null) => void): void
  /**
   * Resolves once `watch` has reported every write that any server acknowledged before the call, for
   * decisions based on a cache. Errors: `unavailable`.
   */
  refresh(): Promise<void>
  /** Bytes of JSON in the records of a noun, by author name; for tasks, only running ones. */
  textBytes(noun: keyof typeof authors): Promise<ReadonlyMap<string, number>>
  /** Why writes are refused at the moment, or null. */
  readonly readOnlyReason: string | null
  /** Waits for pending work, then releases the files and the lock. */
  close(): Promise<void>
}

/** Previous versions of scripts, apart from the store, which holds the current ones. */
export interface ScriptVersions {
  /**
   * Durable when it resolves. Saving an existing version writes the same content again; beyond `maxVersions`
   * the oldest is removed. Errors: `unavailable` if the disk is full.
   */
  save(script: ScriptRecord): Promise<void>
  /** Version numbers, ascending: at most `maxVersions`. */
  list(id: number): Promise<number[]>
  read(id: number, version: number): Promise<ScriptRecord | null>
  forget(id: number): Promise<void>
  /**
   * Moves aside versions of scripts that do not exist (left by a crash, or by a change during a removal) and
   * removes them after `days` days; 0 = never. Returns the folder, if any.
   */
  sweep(exists: (id: number) => Promise<boolean>, days: number, age: Age, now: number): Promise<string | null>
}

/** Number of versions kept of one script: almost three years of daily changes. */
export const maxVersions = 1000
