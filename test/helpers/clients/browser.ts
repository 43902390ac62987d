import { existsSync } from 'node:fs'
import { mkdir } from 'node:fs/promises'
import type { ExecutionContext, TestFn } from 'ava'
import anyTest from 'ava'
import { type Browser, type BrowserContext, chromium, type Page } from 'playwright-core'
import { patience } from '../patience.ts'

const executablePath = process.env.RSM_TEST_CHROMIUM ?? '/usr/bin/chromium'
const flags = [
  '--no-sandbox',
  '--disable-gpu',
  '--disable-dev-shm-usage',
  '--disable-quic',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
]

/** Runs tests that need Chromium; skips them if it is missing. */
export const browserTest: TestFn = existsSync(executablePath) ? anyTest : (anyTest.skip as unknown as TestFn)

export function launchBrowser(): Promise<Browser> {
  return chromium.launch({ executablePath, headless: true, args: flags, timeout: patience })
}

/** A page, with errors from its console: script errors and violations of its content security policy. */
export interface WatchedPage {
  page: Page
  context: BrowserContext
  complaints: string[]
}

/** Opens a page in a profile of its own. Failed responses are not complaints, because tests cause them on purpose. */
export async function openPage(
  t: Pick<ExecutionContext, 'teardown'>,
  browser: Browser,
  options: Parameters<Browser['newContext']>[0] = {},
): Promise<WatchedPage> {
  const context = await browser.newContext({ viewport: { width: 1280, height: 800 }, ...options })
  t.teardown(() => context.close())
  context.setDefaultTimeout(patience)
  const page = await context.newPage()
  const complaints: string[] = []
  page.on('pageerror', (error) => complaints.push(String(error)))
  page.on('console', (message) => {
    const text = message.text()
    if (message.type() === 'error' && !/Failed to load resource|WebSocket connection/.test(text))
      complaints.push(text)
  })
  return { page, context, complaints }
}

/** Saves a screenshot for people to look at; CI uploads the folder. */
export async function picture(page: Page, name: string): Promise<void> {
  await mkdir('artifacts', { recursive: true })
  await page.screenshot({ path: `artifacts/${name}.png` })
}

export async function signIn(
  page: Page,
  url: string,
  { username, password }: Record<'username' | 'password', string>,
) {
  await page.goto(`${url}/`)
  await page.getByLabel('User').fill(username)
  await page.getByLabel('Password').fill(password)
  await page.getByRole('button', { name: 'Sign in' }).click()
  await page.getByRole('heading', { name: 'Hosts' }).waitFor()
}
