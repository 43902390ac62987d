import { accessSync, constants, statSync } from 'node:fs'
import { join } from 'node:path'

/** PATH of every script; the agent looks up its own programs there too. */
export const searchPath = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin'

/** Cache of found programs, because most directories of the path have none. */
const places = new Map<string, string>()

export function findInPath(name: string): string | undefined {
  const place = places.get(name)
  if (place !== undefined && isExecutable(place)) return place
  const found = searchPath
    .split(':')
    .map((directory) => join(directory, name))
    .find(isExecutable)
  if (found !== undefined) places.set(name, found)
  return found
}

export function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK)
    return statSync(path).isFile()
  } catch {
    return false
  }
}
