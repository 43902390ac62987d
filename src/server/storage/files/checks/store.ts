import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { type CheckResult, type Finding, finding } from '../../../../core/checks/finding.ts'
import { isMissing } from '../../../../disk/durable.ts'
import { keyFault, keyNames } from '../../keys.ts'
import type { KeyRecord } from '../../records/run.ts'
import type { Tables } from '../../tables.ts'
import { damaged, manifestName, NewerStore, readManifest } from '../store/files.ts'
import { load } from '../store/recovery.ts'
import { refuseWithoutStore } from '../used.ts'

const rewrite = 'if the server runs, `rsm server compact` rewrites the store from its memory; otherwise '
const back = 'restore it from a backup: `rsm server restore FILE --data-dir DIR`'

function refusal(error: unknown, isRunning: boolean): Finding {
  const message = error instanceof Error ? error.message : String(error)
  if (error instanceof NewerStore) return finding('newer', 'error', message, 'use the newer rsm')
  return finding('store', 'error', message, `${isRunning ? rewrite : ''}${back}`)
}

/** Reads the store like a start, without changes; `tables` is null if it is unreadable. */
export async function checkStore(
  path: string,
  isRunning: boolean,
): Promise<{ result: CheckResult; tables: Tables | null }> {
  const first = await readStore(path, isRunning)
  // A running server may have replaced the files meanwhile.
  return first.tables === null && isRunning ? readStore(path, isRunning) : first
}

async function readStore(
  path: string,
  isRunning: boolean,
): Promise<{ result: CheckResult; tables: Tables | null }> {
  const directory = join(path, 'store')
  try {
    await refuseWithoutStore(path)
    const manifest = await readManifest(directory)
    if (manifest === null) throw damaged(join(directory, manifestName), 0, 'the file is missing')
    const { model, tornBytes } = await load(directory, manifest, new AbortController().signal)
    const tables = model.data
    // With a running server these bytes are a write in progress.
    if (tornBytes === 0 || isRunning) return { result: `its store is whole up to ${tables.sequence}`, tables }
    const message = `the journal ends in ${tornBytes} bytes of a write that was cut off before it was confirmed`
    const todo = 'nothing: the next start of the server cuts it off and keeps it beside the journal'
    return { result: [finding('journal-tail', 'warning', message, todo)], tables }
  } catch (error) {
    return { result: [refusal(error, isRunning)], tables: null }
  }
}

/** Checks the keys beside the store; null `tables`: the store cannot tell which keys it expects. */
export async function checkKeys(directory: string, tables: Tables | null): Promise<CheckResult> {
  const findings: Finding[] = []
  const isUsed = tables === null || tables.count('users') > 0
  for (const name of keyNames) {
    const path = join(directory, name)
    const found = await readFile(path).catch((error: NodeJS.ErrnoException) => error)
    if (found instanceof Error && !isMissing(found)) {
      findings.push(finding('keys', 'error', `${path} cannot be read: ${found.message}`, 'run this as root'))
      continue
    }
    const noted = tables?.get('keys', name) as KeyRecord | undefined
    const fault = keyFault(name, found instanceof Error ? null : found, noted?.keyId, isUsed)
    if (fault === null) continue
    const todo = 'restore it from a backup; without one: `rsm server start --new-keys`'
    findings.push(finding('keys', 'error', `${path} ${fault}`, todo))
  }
  return findings.length > 0 ? findings : 'its keys are those of the store'
}
