import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import type { CopyOrder } from '../../core/protocol/messages.ts'
import type { DesiredAttributes } from '../../disk/files/attributes.ts'
import { Failure } from '../../disk/files/failure.ts'
import { directoryPatience, directorySilent, isOverdue } from '../processes/account.ts'

const run = promisify(execFile)
const octal = (text: string | undefined) => (text === undefined ? undefined : Number.parseInt(text, 8))

/** A name, or a number, of the users or groups of this host. Rejects with `Failure` where there is none. */
async function numberOf(database: 'passwd' | 'group', name: string): Promise<number> {
  const kind = database === 'passwd' ? 'user' : 'group'
  const asked = run('getent', [database, '--', name], { timeout: directoryPatience, killSignal: 'SIGKILL' })
  const found = await asked.catch((cause: unknown) => {
    if (isOverdue(cause))
      throw new Failure(`the ${kind} ${name} could not be looked up: ${directorySilent}`, 126)
    return null
  })
  const id = found?.stdout.trim().split(':')[2]
  if (id !== undefined) return Number(id)
  // A file may belong to a number that nobody has.
  if (/^\d{1,9}$/.test(name)) return Number(name)
  throw new Failure(`there is no ${kind} ${name} on this host`, 126)
}

/** Looks up owner and group: before this process becomes another user, so that no lookup depends on its rights. */
export async function desiredAttributes({
  mode,
  sourceMode,
  owner,
  group,
}: CopyOrder): Promise<DesiredAttributes> {
  return {
    mode: octal(mode),
    sourceMode: octal(sourceMode),
    uid: owner === undefined ? null : await numberOf('passwd', owner),
    gid: group === undefined ? null : await numberOf('group', group),
  }
}
