import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { UpgradeOrder as Release } from '../../core/protocol/messages.ts'
import type { Order } from '../../core/protocol/orders.ts'
import type { Endpoint } from '../../net/connect.ts'
import { type Environment, proxyVariables } from '../../net/proxy.ts'
import { type ProcessId, startTimeOf } from '../processes/machine.ts'
import { ownCommand } from '../processes/programs.ts'

/** Order of an upgrade process, in the directory of its execution. */
export interface UpgradeOrder extends Endpoint {
  readonly taskId: string
  readonly dataDir: string
  /** Proxy variables for its downloads. */
  readonly environment: Record<string, string>
  readonly installed: string
  readonly agent: ProcessId
  /** Seconds until a download, or the wait for terminals, is aborted. */
  readonly timeout: number
  readonly upgrade: Release
}

const orderName = 'order.json'
const failureName = 'failure'
const swappedName = 'swapped'

export const readOrder = (directory: string): UpgradeOrder =>
  JSON.parse(readFileSync(join(directory, orderName), 'utf8')) as UpgradeOrder

/** Saves the error of a failed upgrade for its result. */
export function noteFailure(directory: string, sentence: string): void {
  writeFileSync(join(directory, failureName), sentence, { mode: 0o600 })
}

export function failureOf(directory: string): string | null {
  try {
    return readFileSync(join(directory, failureName), 'utf8')
  } catch {
    return null
  }
}

/** From here on it cannot be cancelled: only the upgrade itself may undo it. */
export function noteSwap(directory: string): void {
  writeFileSync(join(directory, swappedName), '', { mode: 0o600 })
}

export const isSwapped = (directory: string): boolean => existsSync(join(directory, swappedName))

interface OrderSource extends Endpoint, Pick<UpgradeOrder, 'dataDir' | 'installed'> {
  readonly environment?: Environment | undefined
}

/**
 * Writes the order of an upgrade into the directory of its execution. Returns the command that runs it: this
 * version of rsm, which thereby watches its successor.
 */
export type UpgradeWork = (directory: string, order: Extract<Order, { kind: 'UPGRADE' }>) => string[]

export function upgradeWork({ environment, ...where }: OrderSource): UpgradeWork {
  return (directory, { taskId, timeout, upgrade }) => {
    const { pid } = process
    const order: UpgradeOrder = {
      ...where,
      taskId,
      environment: proxyVariables(environment),
      agent: { pid, startTime: startTimeOf(pid) ?? 0 },
      timeout,
      upgrade,
    }
    writeFileSync(join(directory, orderName), JSON.stringify(order), { mode: 0o600 })
    return ownCommand('__upgrade', directory)
  }
}
