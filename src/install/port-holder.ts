import { readdirSync, readFileSync, readlinkSync } from 'node:fs'
import { createServer } from 'node:net'
import { RsmError } from '../core/errors.ts'

/** LISTEN in /proc/net/tcp. */
const listening = '0A'

function inodesListening(port: number): Set<string> {
  const inodes = new Set<string>()
  for (const file of ['/proc/net/tcp', '/proc/net/tcp6']) {
    let text = ''
    try {
      text = readFileSync(file, 'latin1')
    } catch {
      continue
    }
    for (const line of text.split('\n').slice(1)) {
      const [, local = '', , state, , , , , , inode = ''] = line.trim().split(/\s+/)
      if (state === listening && Number.parseInt(local.split(':')[1] ?? '', 16) === port) inodes.add(inode)
    }
  }
  return inodes
}

/** A process, as far as this user may inspect it. */
export interface Process {
  readonly pid: number
  readonly parent: number
  /** Paths of its open files; a deleted one ends in ` (deleted)`. */
  readonly files: readonly string[]
  readonly exe: string
  readonly argv: readonly string[]
}

/** The first matching process, named like `nginx (pid 812)`. */
export function findProcess(fits: (process: Process) => boolean): { name: string; pid: number } | null {
  for (const pid of readdirSync('/proc').filter((name) => /^\d+$/.test(name))) {
    const at = `/proc/${pid}`
    try {
      const files = readdirSync(`${at}/fd`).flatMap((fd) => {
        try {
          return readlinkSync(`${at}/fd/${fd}`)
        } catch {
          // Closed meanwhile.
          return []
        }
      })
      const argv = readFileSync(`${at}/cmdline`, 'utf8').split('\0')
      const parent = Number(/^PPid:\t(\d+)/m.exec(readFileSync(`${at}/status`, 'utf8'))?.[1])
      if (fits({ pid: Number(pid), parent, files, exe: readlinkSync(`${at}/exe`), argv }))
        return { name: `${readFileSync(`${at}/comm`, 'utf8').trim()} (pid ${pid})`, pid: Number(pid) }
    } catch {
      // Ended meanwhile, or belongs to another user.
    }
  }
  return null
}

/** The process that listens on a port, like `nginx (pid 812)`; null if unknown. */
export function holderOf(port: number): string | null {
  const sockets = new Set([...inodesListening(port)].map((inode) => `socket:[${inode}]`))
  return findProcess(({ files }) => files.some((file) => sockets.has(file)))?.name ?? null
}

/** Errors: `unavailable`, with the process that already listens there. */
export async function needPort(host: string, port: number): Promise<void> {
  if (port === 0) return
  const server = createServer()
  try {
    await new Promise<void>((resolve, reject) => {
      server.once('error', reject)
      server.listen({ host, port, exclusive: true }, resolve)
    })
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException
    // Only the unit may open ports below 1024; the installer need not.
    if (code === 'EACCES') return
    const holder = code === 'EADDRINUSE' ? holderOf(port) : null
    throw new RsmError(
      'unavailable',
      code === 'EADDRINUSE'
        ? `port ${port} of ${host} is in use${holder === null ? '' : ` by ${holder}`}`
        : `cannot listen on ${host} port ${port}: ${message}`,
      { hint: 'stop the program that uses it, or choose another port with --port', cause: error },
    )
  } finally {
    await new Promise((resolve) => server.close(resolve))
  }
}
