import type { Client } from '../../client/client.ts'
import type { ExecutionOptions } from '../../core/protocol/http/tasks.ts'
import type { BaseCommand } from '../command/base-command.ts'
import type { StdinReader } from '../input/stdin.ts'
import { sendSource } from './send.ts'
import { fileSource, stdinSource } from './source.ts'

/** Opens what scripts are to read; it is sent once it is known that something runs. Errors: `usage`. */
export async function openScriptStdin(
  command: BaseCommand,
  path: string,
  stdin: StdinReader,
): Promise<{
  readonly bring: (client: Client) => Promise<Pick<ExecutionOptions, 'stdin'>>
  readonly close: () => Promise<void>
}> {
  const source = path === '-' ? stdinSource(stdin, "the scripts' stdin") : await fileSource(path)
  return {
    bring: async (client) => ({ stdin: { fileId: await sendSource(command, client, source) } }),
    close: source.close,
  }
}
