import { Mutex } from '../../core/mutex.ts'
import type { Store } from '../storage/ports/store.ts'
import type { FileRecord } from '../storage/records/file.ts'

/** Changed records that are read one by one; more are read as all are. */
const mostChanged = 10_000

/** The uploads of a store, from a cache: of its files most were fetched from hosts. */
export interface Uploads {
  all(): Promise<Readonly<FileRecord>[]>
}

export function createUploads(store: Pick<Store, 'query' | 'getMany' | 'watch'>): Uploads {
  let known: Map<string, Readonly<FileRecord>> | null = null
  const reads = new Mutex()
  const changed = new Set<string>()

  store.watch('files', (id) => {
    if (known === null) return
    if (id === null || changed.size >= mostChanged) {
      known = null
      changed.clear()
    } else changed.add(String(id))
  })

  async function read(): Promise<Readonly<FileRecord>[]> {
    const uploads = known ?? new Map<string, Readonly<FileRecord>>()
    const isNew = known === null
    // From now on `watch` collects: what changes while this reads is read the next time.
    known = uploads
    const ids = [...changed]
    changed.clear()
    const records = isNew ? (await store.query('files')).items : await store.getMany('files', ids)
    for (const id of ids) uploads.delete(id)
    for (const file of records) if (file?.taskId === null) uploads.set(file.id, file)
    return [...uploads.values()]
  }

  return {
    all: () =>
      reads.run(() =>
        read().catch((error: unknown) => {
          known = null
          throw error
        }),
      ),
  }
}
