import { string } from '@oclif/core/flags'
import { BaseCommand } from '../cli/command/base-command.ts'
import { needed, optional } from '../cli/flags/checks.ts'
import { readNamedFile } from '../cli/input/named-path.ts'
import { stdinReader } from '../cli/input/stdin.ts'
import { jsonText, sanitize } from '../cli/text/sanitize.ts'
import { RsmError } from '../core/errors.ts'

async function readBody(data: string | undefined): Promise<string | undefined> {
  if (data === undefined) return undefined
  let text = data
  if (data === '-') text = await stdinReader()('the body')
  else if (data.startsWith('@')) text = readNamedFile(data.slice(1), '-d')
  return text
}

/** Percent-encodes a path, unless it is encoded already. */
function sentPath(path: string): string {
  try {
    return encodeURI(decodeURI(path))
  } catch {
    throw new RsmError('usage', `not a path: ${path}`, { hint: 'write a % as %25' })
  }
}

/** A path alone means GET. Errors: `usage`. */
function callOf(first: string, second: string | undefined): { method: string; path: string } {
  if (second === undefined && first.startsWith('/')) return { method: 'GET', path: first }
  if (second === undefined)
    throw new RsmError('usage', 'missing PATH', { hint: 'for example: rsm api GET /api/hosts' })
  if (!second.startsWith('/'))
    throw new RsmError('usage', `a path begins with a slash: ${second}`, {
      hint: `rsm api ${first} /api/${second}`,
    })
  const method = first.toUpperCase()
  if (!/^[A-Z]+$/.test(method)) throw new RsmError('usage', `not a method: ${first}`)
  return { method, path: second }
}

export default class ApiCommand extends BaseCommand {
  static override summary = 'Call the REST API with the current URL and token'
  static override examples = [
    '$ rsm api /api/hosts?status=ONLINE',
    `$ rsm api PATCH /api/hosts/1 -d '{"tags":{"role":"web"}}'`,
  ]
  static override args = {
    method: needed('GET (default), POST, PATCH or DELETE'),
    path: optional('path, like /api/hosts'),
  }
  static override flags = {
    data: string({ char: 'd', helpValue: 'JSON', description: 'body; @FILE reads a file, - stdin' }),
  }

  /** Keeps the error as it is, because the user typed the path. */
  protected override blamed(error: Error): Promise<Error> {
    return Promise.resolve(error)
  }

  async run() {
    const { args, flags } = await this.parse(ApiCommand)
    const { method, path } = callOf(args.method, args.path)
    if (args.path === undefined && flags.data !== undefined)
      throw new RsmError('usage', 'a body requires a method', { hint: `rsm api POST ${path} -d ...` })
    const client = await this.client()
    const answer = await client.api.raw(method, sentPath(path), await readBody(flags.data))
    if ('text' in answer) process.stdout.write(process.stdout.isTTY ? sanitize(answer.text) : answer.text)
    else process.stdout.write(`${jsonText(answer.data, 2)}\n`)
  }
}
