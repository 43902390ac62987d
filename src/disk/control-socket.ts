import { existsSync } from 'node:fs'
import { type FileHandle, open } from 'node:fs/promises'
import { join } from 'node:path'
import { RsmError } from '../core/errors.ts'

const socketName = 'control.sock'

/** Bytes of a socket's path (unix(7): 108 with the final zero); the kernel truncates a longer one. */
const longestPath = 107

/** A path to bind or connect to the socket of a data directory; valid until released. */
export interface SocketPath {
  readonly path: string
  release(): Promise<void>
}

/** Reaches a directory with a long path through /proc. Errors: `unavailable` without /proc. */
export async function controlSocket(directory: string): Promise<SocketPath> {
  const path = join(directory, socketName)
  if (Buffer.byteLength(path) <= longestPath) return { path, release: async () => undefined }
  if (!existsSync('/proc/self/fd'))
    throw new RsmError('unavailable', `the path ${path} is too long for a Unix socket`, {
      hint: `choose a data directory whose path has at most ${longestPath - socketName.length - 1} bytes`,
    })
  const handle: FileHandle = await open(directory, 'r')
  return { path: `/proc/self/fd/${handle.fd}/${socketName}`, release: () => handle.close() }
}
