import { RsmError } from '../../../core/errors.ts'
import { may, reaches } from '../../../core/permissions.ts'
import type { SchedulePatch } from '../../../core/protocol/http/schedules.ts'
import { sha256 } from '../../../disk/digest.ts'
import { stillAllowed } from '../../access/credentials.ts'
import { refusal, type UserCaller } from '../../storage/ports/caller.ts'
import type { Reads, Transaction } from '../../storage/ports/store.ts'
import type { ScheduleRecord } from '../../storage/records/schedule.ts'
import type { ScriptRecord } from '../../storage/records/script.ts'
import type { Context } from '../context.ts'

export function ownedBy(caller: UserCaller): Pick<ScheduleRecord, 'ownerId' | 'owner' | 'tokenId' | 'role'> {
  const { id: ownerId, username: owner, role } = caller
  return { ownerId, owner, role, tokenId: caller.tokenKind === 'personal' ? caller.tokenId : null }
}

/**
 * Why a schedule may no longer run, or null. It has the lesser of its owner's current rights and the role it was
 * written with (contract §14). Sessions expire anyway, so only the end of a personal token suspends its schedules.
 */
export async function whySuspended(
  reads: Pick<Reads, 'get'>,
  { ownerId, owner, tokenId, role }: Pick<ScheduleRecord, 'ownerId' | 'owner' | 'tokenId' | 'role'>,
  now: number,
): Promise<string | null> {
  const user = await reads.get('users', ownerId)
  if (!user) return `its owner ${owner} was deleted`
  const { username } = user
  if (!user.enabled) return `its owner ${username} is disabled`
  if (!reaches(user.role, role))
    return `its owner ${username} was demoted: it was written as ${role}, and ${username} is ${user.role} now`
  if (!may(role, 'execute')) return `it was written as ${role}, which may not run anything`
  if (tokenId === null) return null
  const token = await reads.get('tokens', tokenId)
  if (!token || token.userId !== ownerId) return `the token of ${username} that wrote it was revoked`
  if (Date.parse(token.expiresAt) <= now) return `the token of ${username} that wrote it has expired`
  return null
}

const speaksFor = ({ id, role }: Pick<UserCaller, 'id' | 'role'>, ownerId: number): boolean =>
  id === ownerId || may(role, 'administer')

/** Only owner and ADMINs may write. @throws RsmError `forbidden`, or `unauthenticated` for an ended token. */
export async function demandWriter(
  tx: Pick<Transaction, 'get'>,
  caller: UserCaller,
  { ownerId, owner, name }: ScheduleRecord,
): Promise<void> {
  await stillAllowed(tx, caller, 'execute')
  if (speaksFor(caller, ownerId)) return
  throw refusal(caller, `schedule ${name} belongs to ${owner}: only ${owner} or an ADMIN may change it`)
}

/** Only the owner and ADMINs may use a schedule's secrets. @throws RsmError `forbidden`. */
export function demandSecretsOf(caller: UserCaller, { ownerId, owner, name }: ScheduleRecord): void {
  if (speaksFor(caller, ownerId)) return
  throw refusal(caller, `schedule ${name} uses ${owner}'s secrets: only ${owner} or an ADMIN may run it`)
}

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
