import type { IndexOf, Noun, Records } from './records.ts'

type IdOf<N extends Noun> = Records[N]['id']

/** Reads see what is durable, except inside a transaction. Records are immutable: change one by putting a new one. */
interface Reads {
  get<N extends Noun>(noun: N, id: IdOf<N>): Promise<Readonly<Records[N]> | undefined>
  /** The records whose index has this key, ascending by id. */
  find<N extends Noun>(noun: N, index: IndexOf<N>, key: string | number): Promise<Readonly<Records[N]>[]>
}

/** Reads here see every earlier transaction, durable yet or not, and this one's own changes. */
export interface Transaction extends Reads {
  /** Ascending, never reused, even after a removal or a restart. */
  nextId(noun: 'hosts' | 'scripts' | 'clusters' | 'users' | 'tokens' | 'enrollments'): number
  /** The highest that was given out, also to a record that is gone; 0 before the first. */
  lastId(noun: 'enrollments'): number
  put<N extends Noun>(noun: N, record: Records[N]): void
  remove<N extends Noun>(noun: N, id: IdOf<N>): void
}

/**
 * What must last (contract §1: a 2xx on a write means that the write is on disk). One seam, so that another engine can
 * stand behind it; test/contracts/store.ts holds what each has to do.
 */
export interface Store extends Reads {
  /** Names this store for ever. */
  readonly storeId: string
  /** The number of the last commit that is durable; it never goes back but by a restore. */
  readonly sequence: number
  /** A page in ascending (`asc`) or descending order of id, and how many there are in all. */
  page<N extends Noun>(
    noun: N,
    query: { offset: number; limit: number; order: 'asc' | 'desc' },
  ): Promise<{ items: Readonly<Records[N]>[]; total: number }>
  /** All records of a noun in ascending order of id: a snapshot that later writes do not change. */
  all<N extends Noun>(noun: N): Promise<readonly Readonly<Records[N]>[]>
  /**
   * Runs `work` alone (transactions are serial) and commits its changes as one: all or nothing. Resolves with the value
   * of `work` once they are durable; rejects, with nothing changed, when `work` throws, when a unique index clashes
   * (`conflict`), or when the disk refuses (`unavailable`). `work` must not wait for anything but this store.
   */
  transact<T>(work: (tx: Transaction) => Promise<T> | T): Promise<T>
  /**
   * Rises with every durable change of a noun's records, before the writer hears of it: what follows from them holds as
   * long as this stands. Counts from this opening of the store.
   */
  revision(noun: Noun): number
  /** Why writes are refused just now, or null. */
  readonly readOnlyReason: string | null
  /** Waits for what is under way, then frees the files and the lock. */
  close(): Promise<void>
}
