import type { Answer } from './candidates.ts'

/** What fish runs for a Tab. It quotes what it inserts, and adds no space behind `:` and `=`. */
export const fishScript = `# Completion of rsm for fish 3 and later.
function __rsm_complete
    set -l words (commandline -opc)
    set -l current (commandline -ct)
    set -l answer (printf '%s\\0' $words "$current" | command rsm __complete fish 2>/dev/null)
    set -q answer[1]; or return
    set -q answer[2]; and printf '%s\\n' $answer[2..-1]
    set -l lead
    set -l path "$current"
    if string match -q '* cut' -- "$answer[1]"
        set lead (string match -r -- '^.*=' "$current")
        set path (string replace -r -- '^.*=' '' "$current")
    end
    switch (string replace ' cut' '' -- "$answer[1]")
        case files
            for file in (__fish_complete_path "$path")
                printf '%s%s\\n' "$lead" $file
            end
        case directories
            for directory in (__fish_complete_directories "$path")
                printf '%s%s\\n' "$lead" $directory
            end
    end
end
complete -c rsm -e
complete -c rsm -f -k -a '(__rsm_complete)'
`

/** The answer as `fishScript` reads it: whose names of files to add, then each word and what it is about behind a tab. */
export function renderFish({ candidates, files }: Answer): string {
  const lines = candidates.map(({ word, about }) => (about === '' ? word : `${word}\t${about}`))
  const names = files === undefined ? '' : files.lead === '' ? files.only : `${files.only} cut`
  return [names, ...lines, ''].join('\n')
}
