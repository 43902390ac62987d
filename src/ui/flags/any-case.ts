import { CLIError } from '@oclif/core/errors'
import type { FlagInput } from '@oclif/core/interfaces'

/**
 * The same flags, whose closed sets of values are taken in any case: `--role viewer` is VIEWER. oclif compares before it
 * parses, so a `parse` of the flag alone would come too late; help and manifest keep the flags as they are declared.
 */
export function anyCase<F extends FlagInput>(flags: F): F {
  const entries = Object.entries(flags).map(([name, flag]) => {
    if (flag.type !== 'option' || flag.options === undefined) return [name, flag]
    const { options: values, ...rest } = flag
    const parse = async (text: string): Promise<string> => {
      const found = values.find((value) => value.toLowerCase() === text.toLowerCase())
      if (found !== undefined) return found
      throw new CLIError(`--${name}=${text} is not one of: ${values.join(', ')}`)
    }
    return [name, { ...rest, parse }]
  })
  return Object.fromEntries(entries) as F
}
