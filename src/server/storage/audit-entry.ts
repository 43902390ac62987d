import type { AuditActor, AuditDetail, AuditEntry, AuditFacts } from '../../core/audit.ts'
import { type ClockDoubt, doubtSentence } from '../../core/clock/agreed-time.ts'
import { firstLine } from '../../core/scripts/script-form.ts'
import { showLimits } from '../../core/tasks/limits.ts'
import { runsScript } from '../../core/tasks/task.ts'
import { sha256 } from '../../disk/digest.ts'
import type { Log } from '../../disk/log.ts'
import type { AuditEvent, AuditLog } from './ports/audit-log.ts'
import type { Caller } from './ports/caller.ts'
import type { Store } from './ports/store.ts'
import type { FileRecord } from './records/file.ts'
import type { GateScript, TaskRecord } from './records/task.ts'

/** Limits of one entry, so that no request writes more than some KiB to the log. */
const longestText = 1024
const mostFields = 64
const mostItems = 64
const longestDetail = 32 * 1024

/** Event with every text and list cut to its limit. */
export function bounded({ at = '', actor, ip, action, object, outcome, detail }: AuditEvent): AuditFacts {
  return {
    at,
    actor: { ...actor, id: shortOrNull(actor.id), name: shortOrNull(actor.name) },
    ip,
    action: short(action),
    object: object && { type: object.type, id: shortOrNull(object.id), name: shortOrNull(object.name) },
    outcome,
    detail: boundedDetail(detail),
  }
}

function boundedDetail(detail: AuditDetail): AuditDetail {
  const fields = Object.entries(detail).slice(0, mostFields)
  const kept: AuditDetail = Object.fromEntries(
    fields.map(([name, value]) => [
      short(name),
      typeof value === 'string'
        ? short(value)
        : Array.isArray(value)
          ? value.slice(0, mostItems).map((item) => item.slice(0, 256))
          : value,
    ]),
  )
  return JSON.stringify(kept).length > longestDetail ? { tooLong: true, fields: Object.keys(kept) } : kept
}

const short = (text: string) => (text.length <= longestText ? text : `${text.slice(0, longestText)}…`)
const shortOrNull = <T extends string | number | null>(value: T) =>
  typeof value === 'string' ? (short(value) as T) : value

/** Event without commands and first lines of scripts (`--no-audit-commands`). */
export function withoutCommands(event: AuditEvent): AuditEvent {
  const detail = { ...event.detail }
  for (const field of commandFields) delete detail[field]
  return { ...event, detail }
}

/** Entry of a stored line, or null for an invalid one. */
export function parseEntry(line: Buffer | string): AuditEntry | null {
  try {
    const value = JSON.parse(line.toString()) as AuditEntry | null
    const fits =
      typeof value === 'object' &&
      value !== null &&
      Number.isSafeInteger(value.id) &&
      typeof value.at === 'string' &&
      typeof value.action === 'string' &&
      typeof value.hash === 'string' &&
      typeof value.actor === 'object' &&
      value.actor !== null
    return fits ? value : null
  } catch {
    return null
  }
}

export const unreadableAction = 'audit.unreadable'

/** Replaces an unreadable line, so that lists work even if the log is damaged. `place` is its location. */
export function unreadableEntry(id: number, place: AuditDetail): AuditEntry {
  return {
    id,
    at: new Date(0).toISOString(),
    actor: { type: 'system', id: null, name: null, tokenId: null },
    ip: null,
    action: unreadableAction,
    object: null,
    outcome: 'FAILED',
    detail: place,
    hash: '',
  }
}

export const systemActor: AuditActor = { type: 'system', id: null, name: null, tokenId: null }
const anonymous: AuditActor = { type: 'anonymous', id: null, name: null, tokenId: null }

export async function actorOf(caller: Caller | undefined, store: Store): Promise<AuditActor> {
  switch (caller?.type) {
    case undefined:
      return anonymous
    case 'user':
      return { type: 'user', id: caller.id, name: caller.username, tokenId: caller.tokenId }
    case 'agent':
      return { type: 'agent', id: caller.agentId, name: caller.agentId, tokenId: null }
    case 'enrollment': {
      const name = (await store.get('enrollments', caller.id))?.name ?? null
      return { type: 'enrollment', id: caller.id, name, tokenId: null }
    }
  }
}

/** Records a command on the server's machine, with the system as its actor. */
export const recordForSystem = (
  audit: Pick<AuditLog, 'append'>,
  action: string,
  detail: AuditDetail,
  outcome: 'SUCCESS' | 'FAILED' = 'SUCCESS',
) => audit.append({ actor: systemActor, ip: null, action, object: null, outcome, detail })

interface DoubtParts {
  audit: Pick<AuditLog, 'append'>
  log: Log
}

/** Reports to log and audit log when doubt about the clock begins or ends (null). */
export function reportDoubt({ audit, log }: DoubtParts): (doubt: ClockDoubt | null) => void {
  return (doubt) => {
    const message = doubt ? doubtSentence(doubt) : 'the clock is trusted'
    log[doubt ? 'error' : 'info']({ ...doubt }, message)
    audit
      .append({
        actor: systemActor,
        ip: null,
        action: doubt ? 'clock.doubt' : 'clock.agree',
        object: null,
        outcome: doubt ? 'FAILED' : 'SUCCESS',
        detail: { ...doubt, message },
      })
      .catch((error: unknown) => log.warn({ err: error }, 'could not write an audit entry'))
  }
}

type Copy = Pick<
  NonNullable<TaskRecord['copy']>,
  'path' | 'kind' | 'mode' | 'owner' | 'group' | 'backup' | 'check'
>

/** Characters of a script's first line in an entry. */
const longestLine = 200

/** Fields of an entry that hold first lines of scripts, or commands. */
const commandFields = ['firstLine', 'verifyFirstLine', 'rollbackFirstLine', 'command'] as const

export function lineFacts(field: (typeof commandFields)[number], text: string): AuditDetail {
  const line = firstLine(text, longestLine)
  return line === null ? {} : { [field]: line }
}

/** Facts of a task: script, or file and paths, and user. Only first lines of texts, no values of params. */
export function taskFacts(task: TaskRecord): AuditDetail {
  const { id: taskId, hostCount, scriptId, scriptVersion, scriptName, type, runAs, clusterId, limits } = task
  const { script = task.content, verify, rollback } = task.gates ?? {}
  const isScript = script !== null && runsScript(type)
  return {
    ...(typeof task.firstLine === 'string' && { firstLine: task.firstLine }),
    ...(isScript && { ...(scriptId === null && lineFacts('firstLine', script)), sha256: sha256(script) }),
    ...(verify && gateFacts('verify', verify)),
    ...(rollback && gateFacts('rollback', rollback)),
    ...(limits && { limits: showLimits(limits) }),
    ...filesOf(task),
    taskId,
    hostCount,
    type,
    scriptId,
    scriptVersion,
    scriptName,
    clusterId,
    runAs,
  }
}

export function gateFacts(
  name: 'verify' | 'rollback',
  { scriptId, content }: Pick<GateScript, 'scriptId' | 'content'>,
): AuditDetail {
  return {
    ...(scriptId !== null && { [`${name}ScriptId`]: scriptId }),
    ...(content !== null && {
      ...(scriptId === null && lineFacts(`${name}FirstLine`, content)),
      [`${name}Sha256`]: sha256(content),
    }),
  }
}

/** Facts of a file on the server; its sha256 once it is complete. */
export function fileFacts({
  id: fileId,
  name,
  size,
  sha256: fileSha256,
}: Pick<FileRecord, 'id' | 'name' | 'size' | 'sha256'>): AuditDetail {
  return {
    fileId,
    ...(typeof name === 'string' && { fileName: name }),
    ...(size !== null && { fileSize: size }),
    ...(fileSha256 !== null && { fileSha256 }),
  }
}

function copyFacts({ path, kind, mode, owner, group, backup, check }: Copy): AuditDetail {
  return {
    path,
    kind,
    ...(mode !== undefined && { mode }),
    ...(owner !== undefined && { owner }),
    ...(group !== undefined && { group }),
    ...(backup && { backup }),
    ...(check && { check }),
  }
}

function filesOf({ copy, fetch, stdin, fileName, limitRate }: TaskRecord): AuditDetail {
  const file = copy?.file ?? stdin
  return {
    ...(file && fileFacts({ id: file.fileId, name: fileName ?? null, size: file.size, sha256: file.sha256 })),
    ...(copy && copyFacts(copy)),
    ...(fetch && { path: fetch.path, kind: fetch.kind, ...(fetch.follow && { follow: true }) }),
    ...(limitRate !== undefined && { limitRate }),
  }
}
