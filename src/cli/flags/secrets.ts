import { RsmError } from '../../core/errors.ts'
import { ask } from '../input/prompt.ts'

/** Values of secret parameters: never arguments, which every user of the machine can read. */
export async function readSecrets(names: readonly string[]): Promise<Record<string, string>> {
  const secrets: Record<string, string> = {}
  for (const name of names) {
    if (name.includes('='))
      throw new RsmError('usage', '--secret-param takes only a name, because every user can see arguments', {
        hint: `export ${name.slice(0, name.indexOf('='))}, or leave it out to be asked`,
      })
    secrets[name] =
      process.env[name] ??
      (await ask(`${name}: `, { hidden: true, instead: `set ${name} in the environment` }))
  }
  return secrets
}

/**
 * Values of secret params that a former task had and that nobody named this time. They are asked for, and never taken from
 * the environment: whoever started that task chose the names, and could have asked for any variable.
 */
export async function askSecrets(taskId: string, names: readonly string[]): Promise<Record<string, string>> {
  const secrets: Record<string, string> = {}
  const options = names.map((name) => `--secret-param ${name}`).join(' ')
  for (const name of names)
    secrets[name] = await ask(`${name} (a secret param of task ${taskId}): `, {
      hidden: true,
      instead: `task ${taskId} had secret params: add ${options}, with ${names.join(' and ')} in the environment`,
    })
  return secrets
}
