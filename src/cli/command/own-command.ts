import { accessSync, constants } from 'node:fs'
import { delimiter, isAbsolute, join, relative } from 'node:path'
import { isSingleFile } from '../../disk/own-files.ts'
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

/** What to type to start this program again: `rsm`, or where no `rsm` is on the PATH `node bin/run.js`, or the single file. */
export function ownCommand(
  script: string = (isSingleFile ? process.execPath : process.argv[1]) ?? 'rsm',
  path: string = process.env['PATH'] ?? '',
  cwd: string = process.cwd(),
  isAlone: boolean = isSingleFile,
): string {
  if (isOnPath('rsm', path)) return 'rsm'
  const near = relative(cwd, script)
  const isFar = near.startsWith('..') || isAbsolute(near)
  if (isAlone) return shellWord(isFar ? script : `./${near}`)
  return `node ${shellWord(isFar ? script : near)}`
}

/** The same for a process that this one starts: its program, and the words before those of a command. */
export function ownProcess(): readonly [program: string, words: readonly string[]] {
  // Its path may hold another release by now.
  if (isSingleFile) return ['/proc/self/exe', []]
  return [process.execPath, [...process.execArgv, process.argv[1] ?? '']]
}
