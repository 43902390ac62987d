import type { AuditDetail } from '../../../core/audit.ts'
import { firstLine } from '../../../core/scripts/script-form.ts'
import { showLimits } from '../../../core/tasks/limits.ts'
import { runsScript } from '../../../core/tasks/task.ts'
import { sha256 } from '../../../disk/digest.ts'
import type { FileRecord } from '../records/file.ts'
import type { GateScript, TaskRecord } from '../records/task.ts'

type Copy = Pick<
  NonNullable<TaskRecord['copy']>,
  'path' | 'kind' | 'mode' | 'owner' | 'group' | 'backup' | 'check'
>

/** Characters of a script's first line in an entry. */
const longestLine = 200

/** Fields of an entry that hold first lines of scripts, or commands. */
export const commandFields = ['firstLine', 'verifyFirstLine', 'rollbackFirstLine', 'command'] as const

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
