import type { Client } from '../../client/client.ts'
import { upload } from '../../client/upload.ts'
import type { ExecutionOptions } from '../../core/protocol/http/tasks.ts'
import { beginning } from '../../core/text/pieces.ts'
import type { BaseCommand } from '../command/base-command.ts'
import type { StdinReader } from '../input/stdin.ts'
import { showTransfer } from '../output/status-line.ts'
import { fileSource, type LocalSource, stdinSource } from './source.ts'

/** Characters, the server's limit. */
const longestName = 255

/** Uploads a source, with a progress line; returns the file's id. The caller closes the source. */
export async function sendSource(
  command: BaseCommand,
  client: Pick<Client, 'files'>,
  source: LocalSource,
  isSecret = false,
): Promise<string> {
  const progress = showTransfer(command, `sending ${source.name}`)
  try {
    const { fileId } = await upload(client.files, source, {
      name: shownName(source.fileName),
      isSecret,
      sent: (bytes) => progress.at(bytes, source.size),
      cut: progress.cut,
    })
    return fileId
  } finally {
    progress.end()
  }
}

/** Opens the scripts' stdin; uploaded only once the task is certain to start. Errors: `usage`. */
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

/** A name the server accepts, without invisible characters; undefined if nothing is left. */
function shownName(name = ''): string | undefined {
  const seen = beginning(name.replaceAll(/[\p{C}\p{Zl}\p{Zp}]/gu, ''), longestName)
  return seen.trim() === '' ? undefined : seen
}
