import type { ExecutionContext } from 'ava'
import type { Browser, Page } from 'playwright-core'
import type { ServerOptions } from '../../../src/server/app/options.ts'
import { realAgent } from '../agents/real-agent.ts'
import { startTestServer, type TestServer } from '../servers/server.ts'
import { plainShell } from '../terminals/plain-shell.ts'
import { until } from '../until.ts'
import { launchBrowser, openPage, type WatchedPage } from './browser.ts'

/** One server, one browser and one host for all tests of a file. */
export interface ConsoleWorld {
  server: TestServer
  browser: Browser
  hostId: number
  /** A page whose terminals start at once: the shell profiles of this machine's users may take a minute. */
  open(t: ExecutionContext, options?: Parameters<typeof openPage>[2]): Promise<WatchedPage>
  end(): Promise<void>
}

export async function startConsoleWorld(
  hostname = 'web1',
  options: Partial<ServerOptions> = {},
): Promise<ConsoleWorld> {
  const endings: (() => unknown)[] = []
  const t = { teardown: (ending: () => unknown) => endings.unshift(ending) } as unknown as ExecutionContext
  const server = await startTestServer(t, options)
  const browser = await launchBrowser()
  endings.unshift(() => browser.close())
  const { hostId } = await realAgent(t, server, { hostname })
  const shell = plainShell(t)
  return {
    server,
    browser,
    hostId,
    async open(test, options) {
      const opened = await openPage(test, browser, options)
      await opened.context.route('**/api/terminals', async (route) => {
        const request = route.request()
        if (request.method() !== 'POST') return route.continue()
        return route.continue({ postData: JSON.stringify({ ...request.postDataJSON(), shell }) })
      })
      return opened
    },
    async end() {
      for (const ending of endings) await ending()
    },
  }
}

/** The lines on the screen of the visible tab, as they are drawn. */
const rowsShown = `[...document.querySelectorAll('.pane:not(.behind) .xterm-rows > div, .cast .xterm-rows > div')]
  .map((row) => row.textContent.replaceAll('\\u00a0', ' ').trimEnd()).join('\\n')`

export async function screenOf(page: Page): Promise<string> {
  return page.evaluate<string>(rowsShown)
}

/** Waits until the screen is as wanted. Avoids waitForFunction, because the page's policy forbids its eval. */
export async function screenIs(page: Page, what: string, isSo: (screen: string) => boolean): Promise<void> {
  let screen = ''
  const look = async () => {
    screen = await screenOf(page)
    return isSo(screen)
  }
  await until(what, look).catch((error: unknown) => {
    throw new Error(`never shown: ${what}\n${screen.trimEnd()}`, { cause: error })
  })
}

/** Waits until the screen holds this text. */
export function screenHolds(page: Page, text: string): Promise<void> {
  return screenIs(page, text, (screen) => screen.includes(text))
}

/** Opens a terminal on the host of this name, and waits until its shell answers. */
export async function openTerminal(page: Page, hostname: string): Promise<void> {
  await page.getByRole('link', { name: 'Hosts' }).click()
  await page.getByRole('button', { name: `Terminal on ${hostname}`, exact: true }).click()
  await page.getByRole('tab', { name: hostname, selected: true }).first().waitFor()
  await page.locator('.pane:not(.behind) .strip.open').waitFor()
  await say(page, 'echo rea""dy')
  await screenHolds(page, 'ready')
}

/** Types a command into the focused screen. */
export async function say(page: Page, command: string): Promise<void> {
  await page.keyboard.type(`${command}\n`)
}
