import { RsmError } from '../../core/errors.ts'
import { ask } from './prompt.ts'
import { stdinReader } from './stdin.ts'

const instead = 'give it with --password-stdin'

/** A password from stdin, or asked without echo; it never is an argument, which all users of the machine can read. */
export async function readPassword(fromStdin: boolean, question: string): Promise<string> {
  if (!fromStdin) return ask(question, { hidden: true, instead })
  const password = (await stdinReader()('the password')).replace(/\r?\n$/, '')
  if (password === '') throw new RsmError('usage', 'no password came on stdin')
  return password
}

/** A new password, asked twice. */
export async function readNewPassword(fromStdin: boolean): Promise<string> {
  const password = await readPassword(fromStdin, 'New password: ')
  if (fromStdin) return password
  const again = await ask('The same again: ', { hidden: true, instead })
  if (again !== password) throw new RsmError('usage', 'the two passwords differ')
  return password
}
