import { accessSync, constants } from 'node:fs'
import { delimiter, isAbsolute, join, relative } from 'node:path'
import { shellWord } from '../text/shell-word.ts'

export function isOnPath(program: string, path: string): boolean {
  return path.split(delimiter).some((directory) => {
    // npm and npx put these on the PATH of what they start; another terminal does not have them.
    if (directory === '' || directory.endsWith('node_modules/.bin')) return false
    try {
      accessSync(join(directory, program), constants.X_OK)
      return true
    } catch {
      return false
    }
  })
}

/** What to type to start this program again: `rsm`, or `node bin/run.js` where no `rsm` is on the PATH. */
export function ownCommand(
  script: string = process.argv[1] ?? 'rsm',
  path: string = process.env['PATH'] ?? '',
  cwd: string = process.cwd(),
): string {
  if (isOnPath('rsm', path)) return 'rsm'
  const near = relative(cwd, script)
  return `node ${shellWord(near.startsWith('..') || isAbsolute(near) ? script : near)}`
}
