import { RsmError } from '../../../core/errors.ts'
import { may } from '../../../core/permissions.ts'
import type { SchedulePatch } from '../../../core/protocol/http/schedules.ts'
import { sha256 } from '../../../disk/digest.ts'
import type { UserCaller } from '../../storage/ports/caller.ts'
import type { Reads, Transaction } from '../../storage/ports/store.ts'
import type { ScheduleRecord } from '../../storage/records/schedule.ts'
import type { ScriptRecord } from '../../storage/records/script.ts'
import type { Context } from '../context.ts'
import { speaksFor } from './standing.ts'

/** Schedules per read. */
const atOnce = 50

type Naming = Pick<ScheduleRecord, 'scriptId' | 'options'>
type Text = Pick<ScriptRecord, 'id' | 'name' | 'type' | 'sha256'>

interface Ran {
  scriptId: number | null
  scriptName: string | null
  type: string
  content: string | null
}

function scriptIds({ scriptId, options: { verify, rollback } }: Naming): number[] {
  return [scriptId, verify?.scriptId, rollback?.scriptId].filter((id) => typeof id === 'number')
}

const digestOf = ({ type, sha256 }: Pick<Text, 'type' | 'sha256'>): string => `${type} ${sha256}`

/** Current digests of a schedule's stored scripts, by id; digests in `kept` take precedence. */
export async function boundScripts(
  reads: Pick<Reads, 'getMany'>,
  record: Naming,
  kept: ScheduleRecord['secretsFor'] = {},
): Promise<Record<string, string>> {
  const bound: Record<string, string> = {}
  for (const script of await reads.getMany('scripts', scriptIds(record)))
    if (script) bound[script.id] = kept[script.id] ?? digestOf(script)
  return bound
}

/** Whether a patch confirms the current scripts: explicitly, or by giving all secrets again. */
export function confirms(patch: SchedulePatch, names: readonly string[]): boolean {
  if (patch.confirmed === true || patch.stdin) return true
  const { secretParams } = patch
  return names.length > 0 && names.every((name) => typeof secretParams?.[name] === 'string')
}

/** @throws RsmError `conflict` if another user changed a script since the secrets were given. */
function demandUnchanged(
  { secretsFor = {}, owner }: ScheduleRecord,
  texts: readonly Text[],
  what: string,
): void {
  const changed = texts.find((text) => (secretsFor[text.id] ?? digestOf(text)) !== digestOf(text))
  if (!changed) return
  throw new RsmError(
    'conflict',
    `script ${changed.name} changed since ${owner} gave the ${what}; ` +
      `${owner} or an ADMIN must review it (rsm scripts versions ${changed.name}) ` +
      'and run rsm schedules confirm, or give them again',
  )
}

/** Runs before secret params are matched against patterns, because even a refusal reveals something about them. */
export async function demandUnchangedStored(
  store: Pick<Reads, 'getMany'>,
  record: ScheduleRecord,
): Promise<void> {
  if (record.secretParams === null) return
  const scripts = await store.getMany('scripts', scriptIds(record))
  demandUnchanged(
    record,
    scripts.filter((script) => script !== undefined),
    'secret params',
  )
}

/** Checks the texts that the task runs, which may be newer than those checked before. */
export function demandUnchangedTask(
  record: ScheduleRecord,
  task: Ran & {
    gates?: { verify: Ran | null; rollback: Ran | null } | undefined
    hasSecretFile?: true | undefined
  },
): void {
  if (record.secretParams === null && !task.hasSecretFile) return
  const texts = [task, task.gates?.verify, task.gates?.rollback].flatMap((script): Text[] => {
    if (!script || script.scriptId === null || script.type === 'COPY') return []
    const { scriptId: id, scriptName, type, content } = script
    return [{ id, name: scriptName ?? String(id), type: type as Text['type'], sha256: sha256(content ?? '') }]
  })
  demandUnchanged(record, texts, record.secretParams === null ? 'secret file' : 'secret params')
}

/** Ids of the schedules bound to a script that this user may rebind. */
export async function boundTo(
  store: Pick<Reads, 'query'>,
  { id: ownerId, role }: UserCaller,
  scriptId: number,
): Promise<number[]> {
  const where = may(role, 'administer') ? {} : { equals: { ownerId } }
  const found: number[] = []
  for (let offset = 0; ; offset += atOnce) {
    const { items } = await store.query('schedules', { where, offset, limit: atOnce })
    for (const { id, secretsFor = {} } of items) if (scriptId in secretsFor) found.push(id)
    if (items.length < atOnce) return found
  }
}

/**
 * Binds schedules to the next version of a script. If another user's version was not confirmed, only a whole text given by
 * the caller (`isWhole`) replaces it.
 */
export async function rebind(
  tx: Transaction,
  caller: UserCaller,
  scheduleIds: readonly number[],
  { before, after, isWhole }: { before: ScriptRecord; after: ScriptRecord; isWhole: boolean },
): Promise<void> {
  for (const schedule of await tx.getMany('schedules', scheduleIds)) {
    const bound = schedule?.secretsFor?.[after.id]
    if (!schedule || bound === undefined || !speaksFor(caller, schedule.ownerId)) continue
    if (!isWhole && bound !== digestOf(before)) continue
    const secretsFor = { ...schedule.secretsFor, [after.id]: digestOf(after) }
    tx.put('schedules', { ...schedule, secretsFor, revision: schedule.revision + 1 })
  }
}

/** Binds schedules of older servers to the current scripts. */
export async function bindOlder({ store }: Pick<Context, 'store'>): Promise<void> {
  for (let offset = 0; ; offset += atOnce) {
    const { items } = await store.query('schedules', { offset, limit: atOnce })
    const older = items.filter(
      (record) =>
        (record.secretParams !== null || record.options.stdin) &&
        scriptIds(record).some((id) => record.secretsFor?.[id] === undefined),
    )
    await Promise.all(
      older.map(({ id, revision }) =>
        store.transact(async (tx) => {
          const current = await tx.get('schedules', id)
          if (current?.revision !== revision) return
          const secretsFor = await boundScripts(tx, current, current.secretsFor)
          tx.put('schedules', { ...current, secretsFor, revision: revision + 1 })
        }),
      ),
    )
    if (items.length < atOnce) return
  }
}
