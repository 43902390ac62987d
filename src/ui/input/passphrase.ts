import { RsmError } from '../../core/errors.ts'
import { readSecretFile } from './named-file.ts'

/** Guesses at a backup's keys are not throttled, as logins are. */
const shortest = 12

/** A new passphrase, in a file that an option names. Errors: `usage`. */
export function readNewPassphrase(path: string, option: string): string {
  const passphrase = readSecretFile(path, option)
  if (passphrase.length >= shortest) return passphrase
  throw new RsmError('usage', `the passphrase in ${path} (${option}) has fewer than ${shortest} characters`, {
    hint: 'to make a strong one: openssl rand -base64 24',
  })
}
