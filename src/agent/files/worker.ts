import { execFile } from 'node:child_process'
import { createWriteStream, openSync, readdirSync, readFileSync, unlinkSync } from 'node:fs'
import { join } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { promisify } from 'node:util'
import type { CopyOrder, FileOfTask } from '../../core/protocol/messages.ts'
import { isDiskFull } from '../../disk/durable.ts'
import type { DesiredAttributes } from '../../disk/files/attributes.ts'
import { shownNames } from '../../disk/files/byte-names.ts'
import { Failure } from '../../disk/files/failure.ts'
import { bareText } from '../../disk/files/settle.ts'
import { directoryPatience, directorySilent, isOverdue } from '../processes/account.ts'
import { stdinName } from '../processes/launch.ts'
import { CopyWorkspace } from './copy-workspace.ts'
import { type FileOrder, readOrder } from './order.ts'
import { ServerLine } from './server-line.ts'
import { type Copying, copyFile, copyTree, fetchFiles } from './transfers.ts'

/** Exit code of a shell for a process ended by TERM. */
const terminated = 143

/** `initgroups` is missing in @types/node. */
const system = process as typeof process & { initgroups(user: string, group: number): void }

const say = (line: string) => process.stdout.write(`${shownNames(line)}\n`)

const run = promisify(execFile)
const octal = (text: string | undefined) => (text === undefined ? undefined : Number.parseInt(text, 8))

/**
 * Runs the order in this execution directory as its user, until it is done or TERM comes. `what` is `clean`
 * to clean up after a killed worker. Report and exit code say how it ended.
 */
export async function workOnFiles(directory: string, what: string): Promise<void> {
  process.title = 'rsm-agent-files'
  // All files it creates get an explicit mode.
  process.umask(0)
  const order = readOrder(directory)
  const isCleaning = what === 'clean'
  const workspace = new CopyWorkspace(directory, order.taskId, isCleaning ? 'clean' : 'work')
  if (isCleaning) return clean(order, workspace)
  const end = () => {
    workspace.sweep()
    process.exit(terminated)
  }
  process.once('SIGTERM', end)
  try {
    await carryOut(order, directory, workspace)
  } catch (error) {
    const sentence = error instanceof Error ? error.message : String(error)
    process.stderr.write(`${sentence}\n`)
    workspace.report({ error: sentence })
    process.exitCode = error instanceof Failure ? error.exitCode : 1
  } finally {
    workspace.sweep()
    process.off('SIGTERM', end)
    workspace.close()
  }
  return undefined
}

/** Reads everything that only the agent's own user may read before switching users. */
async function carryOut(order: FileOrder, directory: string, workspace: CopyWorkspace): Promise<void> {
  const server = await ServerLine.open(order, workspace)
  try {
    const { copy, fetch, runAs, stdin } = order
    if (stdin !== undefined) return await deliver(stdin, server, directory)
    if (fetch !== undefined) {
      if (runAs !== null) become(runAs)
      const message = await fetchFiles(fetch, (pieces) => server.send(order.taskId, pieces))
      if (message !== null) workspace.report({ error: message })
    } else if (copy !== undefined) {
      const desired = await desiredAttributes(copy)
      const spool = copy.kind === 'TREE' ? openSpool(directory) : null
      if (runAs !== null) become(runAs)
      const copying: Copying = { copy, desired, workspace, server, say, bare: [] }
      const changed = await (spool === null ? copyFile(copying) : copyTree(copying, spool))
      const message = bareText(copying.bare)
      workspace.report({ changed, ...(message !== null && { error: message }) })
    }
  } finally {
    server.close()
  }
}

/** Delivers a script's stdin. If that fails, the script does not begin. */
async function deliver(stdin: FileOfTask, server: ServerLine, directory: string): Promise<void> {
  try {
    await pipeline(server.receive(stdin), createWriteStream(join(directory, stdinName), { mode: 0o600 }))
  } catch (error) {
    const full = isDiskFull(error) ? ": no room in the agent's data directory" : ''
    const reason = error instanceof Error ? error.message : String(error)
    throw new Failure(full === '' ? reason : `${stdin.size} bytes of stdin${full}`, 126)
  }
}

/** Looks up owner and group before switching users, so that the new user's rights do not matter. */
async function desiredAttributes({ mode, sourceMode, owner, group }: CopyOrder): Promise<DesiredAttributes> {
  return {
    mode: octal(mode),
    sourceMode: octal(sourceMode),
    uid: owner === undefined ? null : await numberOf('passwd', owner),
    gid: group === undefined ? null : await numberOf('group', group),
  }
}

/** A user or group of this host, by name or number. Rejects with `Failure` if it does not exist. */
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
  // A file may belong to a number without a user.
  if (/^\d{1,9}$/.test(name)) return Number(name)
  throw new Failure(`there is no ${kind} ${name} on this host`, 126)
}

/** Spool of a tree until its signed checksum is verified: inaccessible to others, and gone with this process. */
function openSpool(directory: string): number {
  const path = join(directory, 'tree')
  const fd = openSync(path, 'wx+', 0o600)
  unlinkSync(path)
  return fd
}

/**
 * Switches this process to another user permanently: user, groups and capabilities of all threads. From then
 * on it starts only cp and tar, on files of that user. That user's processes cannot read its memory with the
 * token, because the kernel forbids tracing a process that was root's.
 * @throws Error if anything of it is still root's
 */
function become({ name, uid, gid }: NonNullable<FileOrder['runAs']>): void {
  // The first stack trace loads the code that formats it, which the other user may not be able to read.
  void new Error('first').stack
  system.initgroups(name, gid)
  process.setgid?.(gid)
  process.setuid?.(uid)
  for (const thread of readdirSync('/proc/self/task')) {
    const status = readFileSync(`/proc/self/task/${thread}/status`, 'latin1')
    const ids = (key: string) => new RegExp(`^${key}:\\s*(.*)$`, 'm').exec(status)?.[1]?.split(/\s+/) ?? []
    const isOther =
      ids('Uid').every((id) => Number(id) === uid) && ids('Gid').every((id) => Number(id) === gid)
    const isBare = ['CapPrm', 'CapEff'].every((key) => /^0+$/.test(ids(key)[0] ?? ''))
    if (!isOther || !isBare || uid === 0) throw new Error(`this process could not become ${name} permanently`)
  }
}

function clean(order: FileOrder, workspace: CopyWorkspace): void {
  if (order.runAs !== null) become(order.runAs)
  workspace.sweep()
}
