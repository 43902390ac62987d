import { readFileSync, realpathSync, type Stats } from 'node:fs'
import { stat } from 'node:fs/promises'
import { RsmError } from '../../core/errors.ts'
import { Mutex } from '../../core/mutex.ts'

/** Milliseconds that a file system may take to answer. */
const defaultPatience = 5_000

/** Threads that directory checks may block: one stays free for the agent's own files. */
const maxBlockedThreads = 3

/** Overdue calls of this process; each blocks a thread. */
let blockedThreads = 0

interface Mount {
  readonly device: string
  readonly mountPoint: string
  readonly type: string
  /** Programs on it cannot be executed or loaded. */
  readonly isNoexec: boolean
  /** The file system itself is read-only, not only this mount: otherwise it can still fill up. */
  readonly isReadOnly: boolean
}

/** Mounts in the kernel's order; touches no file system. `text` has the format of proc_pid_mountinfo(5). */
export function mounts(text = readFileSync('/proc/self/mountinfo', 'utf8')): Mount[] {
  return text
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => {
      const fields = line.split(' ')
      const [, , , , mount = '', options = ''] = fields
      const [type = '', device = '', ofAll = ''] = fields.slice(fields.indexOf('-', 6) + 1)
      const mountPoint = mount.replace(/\\(\d{3})/g, (_, octal: string) =>
        String.fromCharCode(Number.parseInt(octal, 8)),
      )
      return {
        device,
        mountPoint,
        type,
        isNoexec: options.split(',').includes('noexec'),
        // Since Linux 6.16, ext4 reports `emergency_ro` after an error made it read-only.
        isReadOnly: ofAll.split(',').some((option) => option === 'ro' || option === 'emergency_ro'),
      }
    })
}

/** File systems without disk space of this host that could run out. */
const notDisks = new Set(
  (
    'proc sysfs tmpfs devtmpfs devpts cgroup cgroup2 squashfs overlay mqueue autofs bpf debugfs tracefs securityfs ' +
    'pstore hugetlbfs configfs fusectl ramfs binfmt_misc efivarfs nsfs rpc_pipefs iso9660 nfs nfs4 cifs fuse fuse.sshfs'
  ).split(' '),
)

export const disksMounted = (): Mount[] =>
  mounts().filter(({ mountPoint, type }) => mountPoint === '/' || !notDisks.has(type))

/** Whether programs on the file system of an existing directory can be run and loaded. */
export function allowsExec(directory: string): boolean {
  const path = realpathSync(directory)
  let found: Mount | undefined
  for (const each of mounts()) {
    const { mountPoint } = each
    const holds = mountPoint === '/' || path === mountPoint || path.startsWith(`${mountPoint}/`)
    // A later mount at the same place covers an earlier one.
    if (holds && mountPoint.length >= (found?.mountPoint.length ?? 0)) found = each
  }
  return found?.isNoexec !== true
}

/**
 * Unit that stops answering together with a path, by name only: its mount, or the path itself on the root and
 * on an automounter, because it may lead anywhere from there.
 */
function silentWith(path: string): string {
  let found = '/'
  for (const { mountPoint, type } of mounts()) {
    const holds = path === mountPoint || path.startsWith(`${mountPoint}/`)
    if (holds && type !== 'autofs' && mountPoint.length > found.length) found = mountPoint
  }
  return found === '/' ? path : found
}

/**
 * Queries file systems that may never answer: a call on a dead mount (hard NFS, a crashed FUSE daemon) never
 * returns. They are queried one after another; a silent one is skipped until its answer comes.
 */
export class Inquiry<Answer> {
  readonly #question: (path: string) => Promise<Answer>
  readonly #maxBlocked: number
  readonly #patience: number
  readonly #silent = new Set<string>()
  readonly #mutex = new Mutex()

  /** Refuses queries while `maxBlocked` threads are blocked: Node has four for all file operations. */
  constructor(question: (path: string) => Promise<Answer>, maxBlocked: number, patience = defaultPatience) {
    this.#question = question
    this.#maxBlocked = maxBlocked
    this.#patience = patience
  }

  /**
   * Rejects as the question does. @throws RsmError `unavailable` without an answer; its message is a
   * predicate of the path.
   */
  ask(path: string): Promise<Answer> {
    return this.#mutex.run(() => this.#ask(path))
  }

  async #ask(path: string): Promise<Answer> {
    const silence = new RsmError('unavailable', 'does not answer')
    if (this.#silent.size > 0 && this.#silent.has(silentWith(path))) throw silence
    // Always query the root: without it, nothing works on a host.
    if (blockedThreads >= this.#maxBlocked && path !== '/')
      throw new RsmError('unavailable', 'is not checked: too many others do not answer')
    const answer = this.#question(path)
    return new Promise((resolve, reject) => {
      // After the agent was suspended, the timeout fires first: let an answer that has come win.
      const late = setTimeout(() => setImmediate(giveUp), this.#patience)
      let isAnswered = false
      const giveUp = () => {
        if (isAnswered) return
        const place = silentWith(path)
        blockedThreads += 1
        this.#silent.add(place)
        const unblock = () => {
          blockedThreads -= 1
          this.#silent.delete(place)
        }
        answer.then(unblock, unblock)
        reject(silence)
      }
      const settled = () => {
        isAnswered = true
        clearTimeout(late)
      }
      answer.finally(settled).then(resolve, reject)
    })
  }
}

type Directories = Inquiry<Pick<Stats, 'isDirectory'>>

/** Checked before a start in a directory, because a start on a dead mount would block the whole agent. */
const usualDirectories: Directories = new Inquiry(stat, maxBlockedThreads)

/** Reason why nothing can start in a directory, as a sentence; null if it can. */
export async function workDirFault(workDir: string, directories = usualDirectories): Promise<string | null> {
  try {
    if ((await directories.ask(workDir)).isDirectory()) return null
    return `the working directory ${workDir} is not a directory`
  } catch (error) {
    return `the working directory ${workDir}: ${reasonOf(error)}`
  }
}

/** The directory, or the root if it does not exist or does not answer. */
export async function existing(directory: string, directories = usualDirectories): Promise<string> {
  return directories.ask(directory).then(
    (found) => (found.isDirectory() ? directory : '/'),
    () => '/',
  )
}

function reasonOf(error: unknown): string {
  if (error instanceof RsmError) return error.message
  return error instanceof Error && 'code' in error && error.code === 'ENOENT'
    ? 'does not exist'
    : String(error)
}
