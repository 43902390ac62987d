import { RsmError } from '../../core/errors.ts'
import { stdinReader } from '../input/stdin.ts'

/** What the server takes (contract §7). */
const maxCommandBytes = 256 * 1024

/** All of stdin, to be run by the shell of the host. Errors: `usage` where that is not for a terminal. */
export async function commandFromStdin(): Promise<string> {
  const command = await stdinReader()('the commands for the shell')
  if (Buffer.byteLength(command) > maxCommandBytes)
    throw new RsmError('usage', 'a terminal takes at most 256 KiB of commands on stdin', {
      hint: 'run it as a script: rsm exec -w HOST -',
    })
  if (command.trim() === '')
    throw new RsmError('usage', 'nothing to run: stdin is empty, and no terminal', {
      hint: 'rsm terminal HOST -- COMMAND',
    })
  return command
}
