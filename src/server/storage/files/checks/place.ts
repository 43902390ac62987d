import { constants, type StatsFs } from 'node:fs'
import { access, lstat, readdir, stat, statfs } from 'node:fs/promises'
import { join } from 'node:path'
import { type CheckResult, type Finding, finding } from '../../../../core/checks/finding.ts'
import { isMissing } from '../../../../disk/durable.ts'
import { modeBits } from '../../../../disk/files/attributes.ts'

const MB = 1024 ** 2
/** Free disk space: too few bytes are an error, a small share is a warning. */
const tooLittle = 100 * MB
const littleShare = 0.05

export async function checkDirectory(path: string): Promise<CheckResult> {
  const name = '`rsm server doctor --data-dir DIR`'
  const found = await stat(path).catch((error: NodeJS.ErrnoException) => error)
  if (found instanceof Error) {
    const why = isMissing(found) ? 'does not exist' : `cannot be accessed: ${found.message}`
    return [finding('data-directory', 'error', `the data directory ${path} ${why}`, `name another: ${name}`)]
  }
  if (!found.isDirectory())
    return [finding('data-directory', 'error', `${path} is not a directory`, `name another: ${name}`)]
  return null
}

export async function checkPermissions(path: string, keysDirectory: string): Promise<CheckResult> {
  const owner = await stat(path)
  const findings: Finding[] = []
  const mode = (found: { mode: number }) => (found.mode & modeBits).toString(8)
  if ((owner.mode & 0o077) !== 0)
    findings.push(
      finding(
        'permissions',
        'error',
        `${path} is open to other users (mode ${mode(owner)})`,
        `\`chmod 700 ${path}\``,
      ),
    )
  const files = [
    ...(await readdir(path, { recursive: true }).catch(() => readdir(path))).map((name) => join(path, name)),
    ...(await readdir(keysDirectory).catch(() => [])).map((name) => join(keysDirectory, name)),
  ]
  for (const file of files) {
    const found = await lstat(file).catch(() => null)
    if (found === null) continue
    if (found.uid !== owner.uid) {
      const message = `${file} belongs to user ${found.uid}, the data directory to ${owner.uid}`
      findings.push(
        finding('permissions', 'error', message, `\`chown -R ${owner.uid}:${owner.gid} ${path}\``),
      )
      break
    }
    if (file.endsWith('.key') && (found.mode & 0o077) !== 0)
      findings.push(
        finding(
          'permissions',
          'error',
          `other users may read ${file} (mode ${mode(found)})`,
          `\`chmod 600 ${file}\`; anyone who has read it can sign scripts: \`rsm server start --new-keys\``,
        ),
      )
  }
  const mayWrite = await access(path, constants.W_OK).then(
    () => true,
    () => false,
  )
  if (!mayWrite)
    findings.push(
      finding(
        'permissions',
        'error',
        `${path} cannot be written by this user`,
        'run this as the user of the server',
      ),
    )
  return findings.length > 0 ? findings : 'only their owner can access its files'
}

type Room = Pick<StatsFs, 'bavail' | 'blocks' | 'bsize' | 'ffree' | 'files'>

export function judgeRoom(path: string, { bavail, blocks, bsize, ffree, files }: Room): CheckResult {
  const free = bavail * bsize
  const share = blocks === 0 ? 1 : bavail / blocks
  const todo = `free some: \`df -h ${path}\`; \`rsm server retention --dry-run\` shows expired data`
  const message = `the disk of the data directory has ${Math.floor(free / MB)} MB left (${Math.floor(share * 100)} %)`
  if (free < tooLittle) return [finding('disk', 'error', message, todo)]
  if (files > 0 && ffree / files < littleShare)
    return [finding('disk', 'warning', `the disk of the data directory has ${ffree} inodes left`, todo)]
  if (share < littleShare) return [finding('disk', 'warning', message, todo)]
  return `its disk has ${Math.floor(free / MB)} MB left`
}

export const checkDisk = async (path: string): Promise<CheckResult> => judgeRoom(path, await statfs(path))

/** Reports data that was moved aside because the store did not know it. */
export async function checkOrphans(path: string): Promise<CheckResult> {
  const findings: Finding[] = []
  for (const name of ['tasks', 'terminals', 'scripts']) {
    const folder = join(path, name, 'orphaned')
    if ((await readdir(folder).catch(() => [])).length === 0) continue
    const message = `${folder} holds data that this store does not know`
    const todo =
      'if it belongs to this store, move it back while the server is stopped; the server removes it later'
    findings.push(finding('orphans', 'note', message, todo))
  }
  return findings
}
