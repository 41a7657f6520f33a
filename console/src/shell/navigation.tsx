import { BookOpen, Command as CommandIcon, Ellipsis, Keyboard, LogOut } from "lucide-react";
import { Link, useLocation } from "wouter";
import { Badge } from "../design/chip.tsx";
import { IconButton } from "../design/icon-button.tsx";
import { Menu } from "../design/menu.tsx";
import { keysText } from "../parts/commands.tsx";
import { documentationUrl } from "../server/address.ts";
import { useConnection } from "../server/connection.tsx";
import { addressOf, isCurrent, PAGES, type Page } from "./pages.ts";
import { useSignOut } from "./sign-out.ts";
import { THEME_ICONS, THEME_NAMES, type Theme } from "./theme.ts";
import styles from "./navigation.module.css";

const PALETTE_KEYS = keysText("$mod+k");
const GROUPS = ["Work", "Build", "Operate"] as const;
const LISTED = PAGES.filter(({ navigation }) => navigation !== undefined);

const PageLink = ({ page, count }: { page: Page; count: number | undefined }) => {
  const [location] = useLocation();
  const Icon = page.navigation?.icon;
  return (
    <Link
      href={addressOf(page)}
      className={styles.link}
      title={page.title}
      aria-current={isCurrent(page, location) ? "page" : undefined}
    >
      {Icon !== undefined && <Icon aria-hidden size={16} strokeWidth={1.75} />}
      <span className={styles.word}>{page.title}</span>
      {count !== undefined && count > 0 && <Badge>{count > 99 ? "99+" : count}</Badge>}
    </Link>
  );
};

interface NavigationProps {
  /** Numbers beside the names of pages, by path. */
  counts: ReadonlyMap<string, number>;
  theme: Theme;
  onTheme(): void;
  onPalette(): void;
  onKeys(): void;
}

/** At the left of a wide window. */
export const SideNavigation = ({ counts, theme, onTheme, onPalette, onKeys }: NavigationProps) => {
  const { info } = useConnection();
  const signOut = useSignOut();
  return (
    <header className={styles.side}>
      <p className={styles.name} title={`Threadloom ${info.threadloom_version ?? ""}`}>
        <img src="./icon.svg" alt="" width={20} height={20} />
        <span className={styles.word}>Threadloom</span>
      </p>
      <button
        type="button"
        className={styles.palette}
        onClick={onPalette}
        title={`Commands (${PALETTE_KEYS})`}
      >
        <CommandIcon aria-hidden size={16} strokeWidth={1.75} />
        <span className={styles.word}>Commands</span>
        <kbd className={styles.word}>{PALETTE_KEYS}</kbd>
      </button>
      <nav aria-label="Pages" className={styles.pages}>
        {GROUPS.map((group) => (
          <ul key={group} aria-label={group}>
            {LISTED.filter(({ navigation }) => navigation?.group === group).map((page) => (
              <li key={page.path}>
                <PageLink page={page} count={counts.get(page.path)} />
              </li>
            ))}
          </ul>
        ))}
      </nav>
      <div className={styles.settings}>
        <a
          href={documentationUrl}
          className={styles.documentation}
          aria-label="API reference"
          title="API reference"
        >
          <BookOpen aria-hidden size={16} strokeWidth={1.75} />
        </a>
        <IconButton label="Keyboard shortcuts" icon={Keyboard} shortcut="?" onClick={onKeys} />
        <IconButton label={THEME_NAMES[theme]} icon={THEME_ICONS[theme]} onClick={onTheme} />
        {signOut !== undefined && (
          <IconButton label={`Forget the ${signOut.noun}`} icon={LogOut} onClick={signOut.signOut} />
        )}
      </div>
    </header>
  );
};

/** At the bottom of a phone: the most used pages, and a menu of the others. */
export const BottomNavigation = ({ counts, theme, onTheme, onPalette }: NavigationProps) => {
  const [, navigate] = useLocation();
  const signOut = useSignOut();
  const others = LISTED.filter(({ navigation }) => navigation?.isInBottomBar !== true);
  return (
    <nav aria-label="Pages" className={styles.bottom}>
      {LISTED.filter(({ navigation }) => navigation?.isInBottomBar).map((page) => (
        <PageLink key={page.path} page={page} count={counts.get(page.path)} />
      ))}
      <Menu
        trigger={
          <button type="button" className={styles.link}>
            <Ellipsis aria-hidden size={16} strokeWidth={1.75} />
            <span className={styles.word}>More</span>
          </button>
        }
        items={[
          ...others.map((page) => ({
            label: page.title,
            ...(page.navigation && { icon: page.navigation.icon }),
            onSelect: () => navigate(addressOf(page)),
          })),
          { label: "API reference", icon: BookOpen, onSelect: () => location.assign(documentationUrl) },
          { label: "Commands", icon: CommandIcon, onSelect: onPalette },
          { label: THEME_NAMES[theme], icon: THEME_ICONS[theme], onSelect: onTheme },
          ...(signOut === undefined
            ? []
            : [{ label: `Forget the ${signOut.noun}`, icon: LogOut, onSelect: signOut.signOut }]),
        ]}
      />
    </nav>
  );
};
