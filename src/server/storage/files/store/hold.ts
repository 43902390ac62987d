import { type FileHandle, open } from 'node:fs/promises'
import { join } from 'node:path'
import type { Tables } from '../../tables/tables.ts'
import { journalName, type Manifest, snapshotName } from './files.ts'

/** An open file: its first `size` bytes stay as they are, whatever becomes of its name. */
export interface HeldFile {
  readonly name: string
  readonly handle: FileHandle
  readonly size: number
}

/** A store on disk at one transaction. Whoever has it releases it. */
export interface HeldStore {
  readonly manifest: Manifest
  /** The last transaction in it. */
  readonly sequence: number
  readonly files: readonly HeldFile[]
  /** Ids of what has files of its own elsewhere in the data directory. */
  readonly ids: {
    readonly tasks: readonly string[]
    readonly terminals: readonly string[]
    readonly files: readonly string[]
    readonly scripts: readonly number[]
  }
  release(): Promise<void>
}

/** Opens what a manifest names. `tables` is what it all amounts to, `journalSize` how much of the last journal counts. */
export async function holdFiles(
  directory: string,
  manifest: Manifest,
  tables: Tables,
  journalSize: number,
): Promise<HeldStore> {
  const { sequence } = tables
  const ids = {
    tasks: tables.slice('tasks').map(({ id }) => String(id)),
    terminals: tables.slice('terminals').map(({ id }) => String(id)),
    files: tables.slice('files').map(({ id }) => String(id)),
    scripts: tables.slice('scripts').map(({ id }) => Number(id)),
  }
  const files: HeldFile[] = []
  const release = async () => {
    for (const { handle } of files) await handle.close()
  }
  try {
    const last = manifest.journals.at(-1)
    for (const name of [snapshotName(manifest.snapshot), ...manifest.journals.map(journalName)]) {
      const handle = await open(join(directory, name), 'r')
      const isLast = last !== undefined && name === journalName(last)
      files.push({ name, handle, size: isLast ? journalSize : (await handle.stat()).size })
    }
  } catch (error) {
    await release()
    throw error
  }
  return { manifest: { ...manifest, previous: null }, sequence, files, ids, release }
}
