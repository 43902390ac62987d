import { RsmError } from '../../core/errors.ts'
import type { ExecutionOptions } from '../../core/protocol/http/tasks.ts'
import { compareParams, type DeclaredAndGiven, patternsOf } from '../../core/scripts/declared-params.ts'
import type { DeclaredParam } from '../../core/scripts/front-matter.ts'
import { unknownName } from '../../core/text/nearest.ts'
import { paramOption } from '../text/front-matter.ts'
import { sanitizeLine } from '../text/sanitize.ts'
import { ask } from './prompt.ts'

/** Prompts before giving up on a param. */
const maxAsked = 3

interface Setting {
  /** Name in messages. */
  readonly script: string
  readonly attended: boolean
  /** A plan runs nothing, so it does not ask for secrets. */
  readonly plan: boolean
}

function described({ name, description }: DeclaredParam): string {
  return description === '' ? name : `${name} (${sanitizeLine(description)})`
}

/** Reports all faults at once; the hint shows how to give each param. */
function refusal(script: string, declared: readonly DeclaredParam[], found: DeclaredAndGiven): RsmError {
  const { missing, unknown, exposed, unfit } = found
  const names = declared.map(({ name }) => name)
  const faults = [
    ...(missing.length === 0
      ? []
      : [
          `missing parameter${missing.length === 1 ? '' : 's'} of ${script}: ${missing.map(described).join(', ')}`,
        ]),
    ...unknown.map((name) => unknownName(`param of ${script}`, name, names)),
    ...exposed.map((name) => `${name} is secret, and every user can see arguments`),
    ...unfit.map(({ name, pattern }) => `${name} does not match its pattern, ${sanitizeLine(pattern ?? '')}`),
  ]
  const wanted = [...missing, ...exposed.map((name) => ({ name, secret: true })), ...unfit]
  const secrets = wanted.filter(({ secret }) => secret).map(({ name }) => name)
  const where = secrets.length === 0 ? '' : `, with ${secrets.join(' and ')} in the environment`
  const hint =
    wanted.length === 0
      ? `it declares ${names.join(', ')}; to declare another, add the comment: # rsm: param ${unknown[0]} "what it is"`
      : `add ${wanted.map((param) => paramOption(param, 'VALUE')).join(' ')}${where}`
  return new RsmError('usage', faults.join('; '), { hint })
}

async function askFor(param: DeclaredParam, fits: (value: string) => boolean): Promise<string> {
  const shape = param.pattern === null ? '' : `, like ${sanitizeLine(param.pattern)}`
  const instead = `add ${paramOption(param, 'VALUE')}`
  for (let asked = 0; asked < maxAsked; asked++) {
    const answer = await ask(`${described(param)}${shape}: `, { hidden: param.secret, instead })
    if (answer !== '' && fits(answer)) return answer
  }
  throw new RsmError(
    'usage',
    `${param.name} must not be empty${shape === '' ? '' : ` and must match its pattern${shape}`}`,
    {
      hint: instead,
    },
  )
}

/**
 * Completes the options with the params that the script declares: fills in defaults, prompts for missing ones if attended.
 * Never reads secrets from the environment unless a flag names them, because the script's author chose the names. Errors:
 * `usage` with all missing, undeclared, exposed and mismatched params.
 */
export async function completeParams(
  declared: readonly DeclaredParam[],
  options: ExecutionOptions,
  { script, attended, plan }: Setting,
): Promise<ExecutionOptions> {
  const params = new Map(Object.entries(options.params ?? {}))
  const secretParams = new Map(Object.entries(options.secretParams ?? {}))
  const { fits, faults } = await patternsOf(declared)
  if (faults[0] !== undefined) throw new RsmError('usage', `${script}: ${faults[0]}`)
  const found = compareParams(declared, params, secretParams, fits)
  const wrong = [found.unknown, found.exposed, found.unfit].some(({ length }) => length > 0)
  if (wrong || (found.missing.length > 0 && !attended)) throw refusal(script, declared, found)
  for (const { name, default: value } of found.defaulted) if (value !== null) params.set(name, value)
  for (const param of found.missing) {
    const unasked = param.secret && plan
    const values = param.secret ? secretParams : params
    values.set(
      param.name,
      unasked ? '' : await askFor(param, (value) => param.pattern === null || fits(param.pattern, value)),
    )
  }
  return {
    ...options,
    ...(params.size === 0 ? {} : { params: Object.fromEntries(params) }),
    ...(secretParams.size === 0 ? {} : { secretParams: Object.fromEntries(secretParams) }),
  }
}
