import { createHash } from 'node:crypto'
import { access, open, readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { AuditVerifier, parseHead, verifyAudit } from '../../../../core/audit.ts'
import { type Finding, type FindingCode, finding, type Look } from '../../../../core/checks/finding.ts'
import { fitsCheck, hasCheck, withoutCheck } from '../../../../disk/checked-json.ts'
import { sha256 } from '../../../../disk/digest.ts'
import type { FileRecord } from '../../records/file.ts'
import type { TerminalRecord } from '../../records/terminal.ts'
import type { Tables } from '../../tables/tables.ts'
import { auditFileName } from '../audit/log-file.ts'
import { readFirst, watchLines, wholeLines } from '../backup/read-file.ts'
import { verifyRecording } from '../recordings/sums.ts'

/** Findings of one kind that are told one by one. */
const most = 20

/** What is wrong with one file, or null; a missing file is none. */
type Check = (path: string) => Promise<string | null>

const absent = (error: NodeJS.ErrnoException): null => {
  if (error.code === 'ENOENT') return null
  throw error
}

async function looked(
  code: FindingCode,
  files: readonly { path: string; of: string }[],
  check: Check,
): Promise<Finding[]> {
  const found: Finding[] = []
  let more = 0
  for (const { path, of } of files) {
    const fault = await check(path).catch((error: Error) => error.message)
    if (fault === null) continue
    if (found.length === most) more++
    else found.push(finding(code, 'error', `${of}: ${fault}`, `put it back from a backup: ${path}`))
  }
  if (more > 0) found.push(finding(code, 'error', `${more} more like that`, 'mend those above first'))
  return found
}

const checkOutput: Check = async (path) => {
  const file = await open(path, 'r').catch(absent)
  if (file === null) return null
  try {
    const faults: number[] = []
    const bytes = readFirst(file, await wholeLines(file), path)
    for await (const _ of watchLines(bytes, fitsCheck, (offset) => faults.push(offset)))
      if (faults.length > 0) break
    const [at] = faults
    return at === undefined ? null : `the output is damaged: ${path}, byte ${at}`
  } finally {
    await file.close()
  }
}

const checkJson: Check = async (path) => {
  const json = await readFile(path).catch(absent)
  if (json === null) return null
  try {
    const text = hasCheck(json) ? withoutCheck(json) : json
    if (text !== null) {
      JSON.parse(text.toString('utf8'))
      return null
    }
  } catch {
    // As below.
  }
  return `the file is damaged: ${path}`
}

/** Output and results of tasks, recordings, former versions of scripts: what the store knows of. */
export async function lookAtFiles(path: string, tables: Tables): Promise<Look> {
  const findings: Finding[] = []
  const tasks = tables.slice('tasks').map(({ id }) => String(id))
  const fileOf = (id: string, name: string) => ({ path: join(path, 'tasks', id, name), of: `task ${id}` })
  const outputs = tasks.map((id) => fileOf(id, 'output.log'))
  findings.push(...(await looked('output', outputs, checkOutput)))
  const results = tasks.map((id) => fileOf(id, 'task.json'))
  findings.push(...(await looked('results', results, checkJson)))
  const sessions = tables.slice('terminals').map(({ id }) => ({
    path: join(path, 'terminals', `${id}.cast`),
    of: `terminal session ${id}`,
  }))
  findings.push(...(await looked('recording', sessions, checkRecording)))
  for (const { id } of tables.slice('scripts')) {
    const folder = join(path, 'scripts', String(id))
    // What a killed server was writing has another name.
    const names = ((await readdir(folder).catch(absent)) ?? []).filter((name) => /^\d+\.json$/.test(name))
    const versions = names.map((name) => ({ path: join(folder, name), of: `script ${id}` }))
    findings.push(...(await looked('script-version', versions, checkJson)))
  }
  for (const file of tables.slice('files') as FileRecord[]) {
    const place = { path: join(path, 'files', file.id), of: `file ${file.id}` }
    if (file.isComplete) findings.push(...(await looked('file', [place], checkFile(file))))
  }
  findings.push(...(await lookAtGone(path, tables)))
  return findings.length > 0
    ? findings
    : `output of ${tasks.length} tasks and ${sessions.length} recordings are whole`
}

/** What is sealed can't be told from what was stored without the keys. */
const checkFile =
  ({ sha256, sealedKey }: FileRecord): Check =>
  async (path) => {
    const handle = await open(path, 'r').catch(absent)
    if (handle === null) return null
    const hash = createHash('sha256')
    for await (const piece of handle.createReadStream()) hash.update(piece as Buffer)
    return sealedKey !== null || hash.digest('hex') === sha256 ? null : `the file is damaged: ${path}`
  }

/** Bytes of output of an ended task, by its results; what can't be read is told of elsewhere. */
async function outputOf(path: string): Promise<number> {
  const json = await readFile(path).catch(() => null)
  const text = json && hasCheck(json) ? withoutCheck(json) : json
  try {
    const { results } = JSON.parse(text?.toString('utf8') ?? '{}') as {
      results?: { stdoutBytes?: number; stderrBytes?: number }[]
    }
    return (results ?? []).reduce((sum, one) => sum + (one.stdoutBytes ?? 0) + (one.stderrBytes ?? 0), 0)
  } catch {
    return 0
  }
}

/** Output, recordings and files that somebody removed. A backup may have been made without them. */
async function lookAtGone(path: string, tables: Tables): Promise<Finding[]> {
  const isThere = (file: string) =>
    access(file).then(
      () => true,
      () => false,
    )
  const outputs: string[] = []
  for (const { id } of tables.slice('tasks')) {
    const folder = join(path, 'tasks', String(id))
    const output = join(folder, 'output.log')
    if (!(await isThere(output)) && (await outputOf(join(folder, 'task.json'))) > 0) outputs.push(output)
  }
  const recordings: string[] = []
  for (const { id, recordingBytes } of tables.slice('terminals') as TerminalRecord[]) {
    const file = join(path, 'terminals', `${id}.cast`)
    if (recordingBytes > 0 && !(await isThere(file))) recordings.push(file)
  }
  const files: string[] = []
  for (const { id, isComplete } of tables.slice('files') as FileRecord[]) {
    const file = join(path, 'files', id)
    if (isComplete && !(await isThere(file))) files.push(file)
  }
  const gone = (code: FindingCode, what: string, [first, ...others]: readonly string[]) => {
    if (first === undefined) return []
    const more = others.length === 0 ? '' : ` and ${others.length} more`
    const todo = 'put it back from a backup with output; one that was made without output has none'
    return [finding(code, 'warning', `${what} is not there: ${first}${more}`, todo)]
  }
  return [
    ...gone('output', 'output of a task', outputs),
    ...gone('recording', 'a recording', recordings),
    ...gone('file', 'a file', files),
  ]
}

const checkRecording: Check = async (path) => {
  const file = await open(path, 'r').catch(absent)
  if (file === null) return null
  const { size } = await file.stat()
  await file.close()
  return verifyRecording(path, size, size).then(
    () => null,
    (error: Error) => error.message,
  )
}

/** The chain of the audit log, and its head as it was noted apart from it. */
export async function lookAtAudit(path: string): Promise<Look> {
  const log = join(path, 'audit', auditFileName)
  const todo =
    'keep the file as it is, and compare it with a backup: `rsm audit verify` says what is sound before that'
  const noted = await readFile(join(path, 'audit.head'), 'utf8').catch(absent)
  const head = noted === null ? null : parseHead(noted)
  if (head === undefined)
    return [finding('audit-log', 'error', `${join(path, 'audit.head')} does not hold a head`, todo)]
  const file = await open(log, 'r').catch(absent)
  if (file === null) return noted === null ? null : [finding('audit-log', 'error', `${log} is missing`, todo)]
  try {
    const verifier = new AuditVerifier(sha256, head)
    const fault = await verifyAudit(readFirst(file, await wholeLines(file), log), verifier)
    if (fault === null) return `its audit log is whole up to ${verifier.head.id}`
    return [
      finding('audit-log', 'error', `the audit log ${log} is not what was written: ${fault.sentence}`, todo),
    ]
  } finally {
    await file.close()
  }
}

/** What the clock has shown, as it is kept. */
export async function lookAtClockFile(path: string): Promise<Look> {
  const file = join(path, 'clock.json')
  const kept = await readFile(file).catch(absent)
  if (kept === null) return null
  const json = kept.subarray(0, -1)
  if (hasCheck(json) && fitsCheck(json)) return null
  const says = `${file} is damaged: at the next start the server takes from its data what the clock has shown`
  return [
    finding(
      'clock-file',
      'warning',
      says,
      'start the server; if the clock is right then: `rsm server confirm-clock`',
    ),
  ]
}
