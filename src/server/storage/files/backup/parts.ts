import { type FileHandle, open, readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { showHead } from '../../../../core/audit.ts'
import { RsmError } from '../../../../core/errors.ts'
import { fitsCheck } from '../../../../disk/checked-json.ts'
import { parseEntry } from '../../audit/entry.ts'
import { auditFileName, readBackward } from '../audit/log-file.ts'
import { sumsSuffix, verifyRecording } from '../recordings/sums.ts'
import { type HeldStore, manifestName } from '../store/files.ts'
import { isAsWritten } from '../store/line.ts'
import { markName } from '../used.ts'
import { readFirst, watchLines, wholeLines } from './read-file.ts'

/** One file of a backup: its name in the data directory, and exactly `size` bytes. */
export interface Part {
  readonly name: string
  readonly size: number
  readonly bytes: AsyncIterable<Uint8Array> | Iterable<Uint8Array>
}

interface PartOptions {
  readonly withOutput: boolean
  /** Hears of what is on disk and is not what was written. */
  readonly damaged: (sentence: string) => void
}

async function openIfThere(path: string): Promise<FileHandle | null> {
  return open(path, 'r').catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return null
    throw error
  })
}

async function readAll(handle: FileHandle): Promise<Buffer> {
  try {
    return await handle.readFile()
  } finally {
    await handle.close()
  }
}

function inMemory(name: string, content: string | Buffer): Part {
  const bytes = Buffer.from(content)
  return { name, size: bytes.length, bytes: [bytes] }
}

/** Everything of a data directory that a backup holds, keys apart: what the store at `held` knows, however it goes on meanwhile. */
export async function* partsOf(
  directory: string,
  held: HeldStore,
  options: PartOptions,
): AsyncGenerator<Part> {
  yield* ofStore(held)
  for (const id of held.ids.scripts) yield* ofScript(directory, id)
  yield* ofAudit(directory)
  for (const name of ['clock.json', markName]) {
    const handle = await openIfThere(join(directory, name))
    if (handle === null) continue
    yield inMemory(name, await readAll(handle))
  }
  for (const id of held.ids.tasks) yield* ofTask(directory, id, options)
  if (!options.withOutput) return
  for (const id of held.ids.terminals) yield* ofTerminal(directory, id, options)
  for (const id of held.ids.files) yield* ofFile(directory, id)
}

async function* ofStore({ manifest, files }: HeldStore): AsyncGenerator<Part> {
  yield inMemory(`store/${manifestName}`, `${JSON.stringify(manifest)}\n`)
  for (const { name, handle, size } of files) {
    const refuse = (offset: number) => {
      throw new RsmError(
        'unavailable',
        `the store is damaged on disk: ${name}, byte ${offset}: the line does not match its checksum`,
        {
          hint: 'if the server runs, `rsm server compact` rewrites the store from its memory; then make the backup again',
        },
      )
    }
    const bytes = watchLines(readFirst(handle, size, name), isAsWritten, refuse)
    yield { name: `store/${name}`, size, bytes }
  }
}

/** A script that was removed meanwhile has lost its former versions. */
async function* ofScript(directory: string, id: number): AsyncGenerator<Part> {
  const folder = join('scripts', String(id))
  const names = await readdir(join(directory, folder)).catch(() => [])
  for (const name of names.filter((name) => /^[1-9]\d*\.json$/.test(name))) {
    const handle = await openIfThere(join(directory, folder, name))
    if (handle === null) continue
    yield inMemory(`${folder}/${name}`, await readAll(handle))
  }
}

/** The log, and its last entry as the head that the restored server compares it with. */
async function* ofAudit(directory: string): AsyncGenerator<Part> {
  const name = `audit/${auditFileName}`
  const handle = await openIfThere(join(directory, name))
  if (handle === null) return
  try {
    const size = await wholeLines(handle)
    yield { name, size, bytes: readFirst(handle, size, name) }
    for await (const lines of readBackward(handle, size))
      for (const { bytes } of lines) {
        const entry = parseEntry(bytes)
        if (entry) return yield inMemory('audit.head', `${showHead(entry)}\n`)
      }
  } finally {
    await handle.close()
  }
}

async function* ofTask(
  directory: string,
  id: string,
  { withOutput, damaged }: PartOptions,
): AsyncGenerator<Part> {
  const results = `tasks/${id}/task.json`
  const handle = await openIfThere(join(directory, results))
  if (handle !== null) {
    const json = await readAll(handle)
    if (!fitsCheck(json)) damaged(`the results of task ${id} are damaged: ${results}`)
    yield inMemory(results, json)
  }
  const name = `tasks/${id}/output.log`
  const log = withOutput ? await openIfThere(join(directory, name)) : null
  if (log === null) return
  try {
    const size = await wholeLines(log)
    const tell = (offset: number) => damaged(`the output of task ${id} is damaged: ${name}, byte ${offset}`)
    yield { name, size, bytes: watchLines(readFirst(log, size, name), fitsCheck, tell) }
  } finally {
    await log.close()
  }
}

/** A secret file may have gone with its task meanwhile. */
async function* ofFile(directory: string, id: string): AsyncGenerator<Part> {
  const name = `files/${id}`
  const handle = await openIfThere(join(directory, name))
  if (handle === null) return
  try {
    const { size } = await handle.stat()
    yield { name, size, bytes: readFirst(handle, size, name) }
  } finally {
    await handle.close()
  }
}

/** The checks first: those of a session that goes on are never ahead of its recording then. */
async function* ofTerminal(directory: string, id: string, { damaged }: PartOptions): AsyncGenerator<Part> {
  const name = `terminals/${id}.cast`
  const path = join(directory, name)
  const handle = await openIfThere(path)
  if (handle === null) return
  try {
    const sums = await readFile(path + sumsSuffix).catch(() => null)
    if (sums !== null) yield inMemory(name + sumsSuffix, sums)
    const { size } = await handle.stat()
    await verifyRecording(path, size, size).catch((error: Error) => damaged(error.message))
    yield { name, size, bytes: readFirst(handle, size, name) }
  } finally {
    await handle.close()
  }
}
