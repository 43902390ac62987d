import { accessSync, constants, statSync } from 'node:fs'
import { join } from 'node:path'

/** The PATH of every script, and where the agent finds what it starts for one. */
export const searchPath = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin'

/** Where programs were found: looked at first, as most directories of the path hold none of them. */
const places = new Map<string, string>()

/** The path of a program that scripts find by this name. */
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

/** Whether it is a file that the agent itself could run. */
export function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK)
    return statSync(path).isFile()
  } catch {
    return false
  }
}
