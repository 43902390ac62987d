import { open, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { AuditVerifier, parseHead, verifyAudit } from '../../../../core/audit.ts'
import { type CheckResult, type Finding, finding } from '../../../../core/checks/finding.ts'
import { fitsCheck, hasCheck, sha256 } from '../../../../disk/digest.ts'
import { isMissing, nullWhereMissing } from '../../../../disk/durable.ts'
import { keyFault, keyNames } from '../../keys.ts'
import type { FileRecord } from '../../records/file.ts'
import type { KeyRecord } from '../../records/run.ts'
import type { TerminalRecord } from '../../records/terminal.ts'
import type { Blob, Damage } from '../../streams.ts'
import type { Tables } from '../../tables.ts'
import { auditFileName } from '../audit-file.ts'
import { readFirst, wholeLines } from '../read-file.ts'
import { damaged, manifestName, NewerStore, readManifest } from '../store/files.ts'
import { load } from '../store/recovery.ts'
import { createDirectoryReader } from '../streams/reader.ts'
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

/** Limit of findings of one kind that are reported one by one. */
const maxPerCode = 20

async function idsIn(blobs: AsyncIterable<Blob | Uint8Array>): Promise<Set<string>> {
  const ids = new Set<string>()
  for await (const item of blobs) if (!(item instanceof Uint8Array)) ids.add(item.id)
  return ids
}

/** Checks output and results of tasks, recordings, files and previous script versions. */
export async function checkFiles(path: string, tables: Tables): Promise<CheckResult> {
  const findings: Finding[] = []
  const counts = new Map<Damage['code'], number>()
  const add = (code: Damage['code'], message: string, advice: string) => {
    const count = (counts.get(code) ?? 0) + 1
    counts.set(code, count)
    if (count <= maxPerCode) findings.push(finding(code, 'error', message, advice))
  }
  /** Paths, which are not also reported as missing. */
  const unreadable = new Set<string>()
  const reader = createDirectoryReader({
    path,
    tables,
    storeId: '',
    damaged: ({ code, of, fault, path }) => add(code, `${of}: ${fault}`, `restore it from a backup: ${path}`),
    unreadable: ({ code, of, fault, path }) => {
      unreadable.add(path)
      add(code, `${of}: ${fault}`, `run this as root, or restore it from a backup: ${path}`)
    },
  })
  const gone = (code: Damage['code'], what: string, paths: readonly string[]) => {
    const [first, ...others] = paths.filter((path) => !unreadable.has(path))
    if (first === undefined) return
    const more = others.length === 0 ? '' : ` and ${others.length} more`
    const todo = 'restore it from a backup that was made with output'
    findings.push(finding(code, 'warning', `${what} is missing: ${first}${more}`, todo))
  }
  const outputs = await idsIn(reader.output())
  const lostOutputs: string[] = []
  for await (const item of reader.results())
    if ('results' in item && !outputs.has(item.taskId) && item.results.some(hasOutput))
      lostOutputs.push(join(path, 'tasks', item.taskId, 'output.log'))
  gone('output', 'output of a task', lostOutputs)
  const recordings = await idsIn(reader.recordings())
  const lostRecordings = (tables.slice('terminals') as TerminalRecord[])
    .filter(({ id, recordingBytes }) => recordingBytes > 0 && !recordings.has(id))
    .map(({ id }) => join(path, 'terminals', `${id}.cast`))
  gone('recording', 'a recording', lostRecordings)
  for await (const _ of reader.versions());
  const files = await idsIn(reader.files())
  const lostFiles = (tables.slice('files') as FileRecord[])
    .filter(({ id, isComplete }) => isComplete && !files.has(id))
    .map(({ id }) => join(path, 'files', id))
  gone('file', 'a file', lostFiles)
  for (const [code, count] of counts)
    if (count > maxPerCode)
      findings.push(
        finding(code, 'error', `${count - maxPerCode} more like these`, 'repair those above first'),
      )
  return findings.length > 0
    ? findings
    : `output of ${tables.count('tasks')} tasks and ${tables.count('terminals')} recordings are whole`
}

const hasOutput = ({ stdoutBytes, stderrBytes }: { stdoutBytes: number; stderrBytes: number }) =>
  stdoutBytes + stderrBytes > 0

export async function checkAudit(path: string): Promise<CheckResult> {
  const log = join(path, 'audit', auditFileName)
  const todo = 'keep the file, and compare it with a backup: `rsm audit verify` shows up to where it is sound'
  const noted = await readFile(join(path, 'audit.head'), 'utf8').catch(nullWhereMissing)
  const head = noted === null ? null : parseHead(noted)
  if (head === undefined)
    return [finding('audit-log', 'error', `${join(path, 'audit.head')} does not hold a head`, todo)]
  const file = await open(log, 'r').catch(nullWhereMissing)
  if (file === null) return noted === null ? null : [finding('audit-log', 'error', `${log} is missing`, todo)]
  try {
    const verifier = new AuditVerifier(sha256, head)
    const fault = await verifyAudit(readFirst(file, await wholeLines(file), log), verifier)
    if (fault === null) return `its audit log is whole up to ${verifier.head.id}`
    return [finding('audit-log', 'error', `the audit log ${log} is damaged: ${fault.sentence}`, todo)]
  } finally {
    await file.close()
  }
}

export async function checkClockFile(path: string): Promise<CheckResult> {
  const file = join(path, 'clock.json')
  const kept = await readFile(file).catch(nullWhereMissing)
  if (kept === null) return null
  const json = kept.subarray(0, -1)
  if (hasCheck(json) && fitsCheck(json)) return null
  const message = `${file} is damaged: the next start of the server derives the clock's past from its data`
  return [
    finding(
      'clock-file',
      'warning',
      message,
      'start the server; if the clock is right then: `rsm server confirm-clock`',
    ),
  ]
}
