"""Output for reviews: differences as Markdown and pages, and findings in the formats of build servers."""
