import { statSync } from 'node:fs'
import { RsmError } from '../../core/errors.ts'
import { confirm } from './prompt.ts'

/** Asks before a file that is there is replaced, unless `yes`. Errors: `usage` for what is no file, `interrupted` for a no. */
export async function mayReplace(file: string, yes: boolean): Promise<void> {
  const found = statSync(file, { throwIfNoEntry: false })
  if (found === undefined) return
  // A file that took the name of /dev/null would be the end of the machine.
  if (!found.isFile())
    throw new RsmError('usage', `${file} is ${found.isDirectory() ? 'a directory' : 'not a regular file'}`, {
      hint: 'name a file to write, or - for stdout',
    })
  if (!yes && !(await confirm(`Replace ${file}?`, `${file} is there already: use --yes to replace it`)))
    throw new RsmError('interrupted', `${file} is kept`)
}
